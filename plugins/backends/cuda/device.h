// The narrow seam: all that the cuda backend asks of a machine. Two devices implement it: a GPU
// through NVIDIA's driver (gpu/), and the emulated one, which runs the same kernel sources on
// the CPU (../cuda_emulated).
//
// Everything is enqueued on one stream, in the order of the calls; from_device(), synchronize() and await()
// wait for it. One thread at a time. Every function throws std::runtime_error with one sentence.
#pragma once

#include <mulligan/backend.h>
#include <mulligan/cuda_kernel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "plugins/backends/cuda/attention.h"
#include "plugins/backends/cuda/device_argument.h"

namespace mulligan::cuda {

namespace triton {
class CompiledKernel;
}

struct DeviceFacts {
  std::string description;
  std::uint64_t memory_bytes = 0;
  int threads = 0;  // host threads that do the computing; 0: not applicable
  bool computes = true;
  std::string architecture = {};  // "sm_90a"; empty: runs no compiled code
};

// What a device has made so far that takes long: modules of code that it loaded, functions that were compiled
// for them now, classes of matmuls whose algorithms were timed.
struct DeviceMade {
  std::uint64_t modules = 0, compiled = 0, measurements = 0;
};

// A __global__ function made ready for launches, by all that ask for the same code.
class Function {
 public:
  virtual ~Function() = default;
};

// What to load: a launch (its function and constants) of a kernel and the kernel's source.
struct FunctionRequest {
  const char* kernel;
  const char* source;
  const mlg_cuda_launch* launch;
  // In place of the source; the launch's function is its entry point.
  const triton::CompiledKernel* compiled = nullptr;
};

struct Grid {
  std::uint32_t blocks[3], threads[3], shared_bytes;
};

// A matmul of `batch` pairs: c = alpha * op(a) op(b) + beta * term; op(a) is [m, k], op(b) [k, n], c
// [m, n], all row-major and contiguous, pair after pair. f32 accumulation; beta = 0 does not read what it
// scales. What lies between the pairs follows from the extents, so that no shape exists without it.
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  mlg_dtype input = MLG_F32, output = MLG_F32;

  // Elements from one pair's matrix to the next one's, which is what a matrix holds.
  std::int64_t stride_a() const { return m * k; }
  std::int64_t stride_b() const { return k * n; }
  std::int64_t stride_c() const { return m * n; }

  auto operator<=>(const GemmShape&) const = default;
};

// A matmul made ready: on a GPU with the fastest algorithm for its shape.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual std::size_t workspace_bytes() const { return 0; }
  // The measurement that its algorithm was taken from (mlg_work); 0: none.
  virtual std::uint32_t measurement() const { return 0; }
  // Finds that algorithm; run() does it where nobody did before. Not while a graph is captured.
  virtual void make_ready() {}
  // c = alpha op(a) op(b) + beta term: `term` is c itself, or other memory of its shape.
  virtual void run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
                   const DeviceArgument& c, void* workspace) = 0;
};

// Work recorded once, launched as a whole.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceFacts facts() const = 0;

  // Memory, aligned to 256 bytes, contents undefined.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* address) noexcept = 0;
  virtual void to_device(void* device, const void* host, std::size_t bytes) = 0;  // has read `host` on return
  virtual void from_device(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* device, int byte, std::size_t bytes) = 0;

  // A load() of it will follow. What takes long about it goes on meanwhile, and may then be refused only
  // there; the request need not outlive the call.
  virtual void expect(const FunctionRequest& request) { load(request); }
  // Lives as long as the device; requests that compile to the same code get the same one.
  virtual Function& load(const FunctionRequest& request) = 0;
  virtual void launch(Function& function, const Grid& grid, std::span<const DeviceArgument> arguments) = 0;
  virtual std::unique_ptr<Gemm> gemm(const GemmShape& shape) = 0;
  // What was measured for matmuls so far, a sentence for the log; empty: nothing.
  virtual std::string measured() const { return {}; }
  virtual DeviceMade made() const { return {}; }
  // Why the device has no library that computes attention: "cuDNN was not found (...)"; empty where
  // it has one.
  virtual std::string attention_missing() { return {}; }
  // The most workspace that the plan of a packed shape, or of one that is not, needs whose direction, tokens,
  // heads and width are those of `shape`: known without a plan. Nothing where the library has no packed
  // attention of this direction; then `reason` is as below.
  virtual std::optional<std::size_t> attention_workspace_bytes(const AttentionShape& shape,
                                                               std::string& reason) = 0;
  // An attention() of it will follow, whose plan begins to be made meanwhile.
  virtual void expect_attention(const AttentionShape&) {}
  // Null where that library has no attention of this shape; then `reason` says why: "cuDNN 9.19.0 has no plan
  // for it: ...".
  virtual std::unique_ptr<Attention> attention(const AttentionShape& shape, std::string& reason) = 0;

  // What a kernel call is about to write and leave undefined before it: `out` arguments and workspace. A
  // device without memory checks does nothing.
  virtual void mark_unwritten(const DeviceArgument&) {}
  // The host may look at it again, whatever it holds.
  virtual void mark_written(const DeviceArgument&) {}
  // The bytes of an `out` argument must all have been written.
  virtual void require_written(const DeviceArgument&) {}

  // Between begin and end, work is recorded instead of run. Whatever waits for the device, allocates, frees,
  // or makes functions and plans is refused meanwhile. abandon_capture() forgets what was recorded.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedGraph> end_capture() = 0;
  virtual void abandon_capture() noexcept = 0;
  virtual void launch(CapturedGraph& graph) = 0;

  virtual void synchronize() = 0;
  // An error was thrown after which no call can succeed.
  virtual bool lost() const { return false; }
  // As Backend's of the same names (<mulligan/backend.h>): the place in the stream, and waiting for it.
  virtual void mark(std::uint32_t) {}
  virtual void await(std::uint32_t) { synchronize(); }
  // The stream, for libraries that work on the same memory; none where its memory is not an address for others.
  virtual mlg_queue queue() { return {MLG_QUEUE_NONE, nullptr, nullptr}; }
};

}  // namespace mulligan::cuda
