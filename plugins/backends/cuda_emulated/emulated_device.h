// The emulated device: kernels run on the CPU, one thread of a block at a time, under checks that a GPU
// does not make. For tests and for machines without a GPU; slow.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda_emulated/block_runner.h"
#include "plugins/backends/cuda_emulated/device_memory.h"
#include "plugins/backends/cuda_emulated/emulated_stream.h"

namespace mulligan::cuda {

class EmulatedDevice : public Device {
 public:
  // `driver`: library of an EmulatedStream, on which the work is done asynchronously; empty: at once, by the
  // caller. `log_launches`: each launch and call of a library is written to the log when it runs.
  explicit EmulatedDevice(EmulatedOrder order, const std::string& driver = "", bool log_launches = false);

  DeviceFacts facts() const override;
  void* allocate(std::size_t bytes) override;
  void free(void* address) noexcept override;
  void to_device(void* device, const void* host, std::size_t bytes) override;
  // Throws when a byte was never written.
  void from_device(void* host, const void* device, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill(void* device, int byte, std::size_t bytes) override;
  Function& load(const FunctionRequest& request) override;
  void launch(Function& function, const Grid& grid, std::span<const DeviceArgument> arguments) override;
  std::unique_ptr<Gemm> gemm(const GemmShape& shape) override;
  std::optional<std::size_t> attention_workspace_bytes(const AttentionShape& shape,
                                                       std::string& reason) override;
  std::unique_ptr<Attention> attention(const AttentionShape& shape, std::string& reason) override;
  void mark_unwritten(const DeviceArgument& argument) override;
  void mark_written(const DeviceArgument& argument) override;
  void require_written(const DeviceArgument& argument) override;
  void begin_capture() override;
  std::unique_ptr<CapturedGraph> end_capture() override;
  void abandon_capture() noexcept override;
  void launch(CapturedGraph& graph) override;
  void synchronize() override;
  void mark(std::uint32_t slot) override;
  void await(std::uint32_t slot) override;
  DeviceMade made() const override { return {functions_.size(), 0, 0}; }
  // The stream, where there is one.
  mlg_queue queue() override;

  // Does `work`, or keeps it while a graph is being captured.
  void enqueue(std::function<void()> work);
  DeviceMemory& memory() { return memory_; }
  // `what` runs now: "launch of axpby<...>".
  void note(const std::string& what) const;

 protected:
  // As on a GPU, where such a call breaks the capture.
  void refuse_in_capture(const char* what) const;

 private:
  // The code, and where its constants lie with what they are.
  using LoadedFunction =
      std::pair<void (*)(const mlg_emulated_argument*), std::vector<std::pair<const void*, double>>>;
  // At once, or on the stream.
  void perform(std::function<void()> work);

  DeviceMemory memory_;
  BlockRunner runner_;
  bool log_launches_;
  bool capturing_ = false, freed_in_capture_ = false;
  std::vector<std::function<void()>> captured_;
  std::map<LoadedFunction, std::unique_ptr<Function>> functions_;
  std::unique_ptr<EmulatedStream> stream_;  // last: its work uses the others
};

// Matmuls: on a GPU a library computes them, so what is emulated is their result.
class EmulatedGemm final : public Gemm {
 public:
  EmulatedGemm(EmulatedDevice& device, const GemmShape& shape) : device_(device), shape_(shape) {}
  void run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
           const DeviceArgument& c, void* workspace) override;

 private:
  EmulatedDevice& device_;
  GemmShape shape_;
};

// A library's attention: what is emulated is its result, and that it reads rows where their starts and
// lengths say, and nowhere else.
class EmulatedAttention final : public Attention {
 public:
  EmulatedAttention(EmulatedDevice& device, const AttentionShape& shape) : device_(device), shape_(shape) {}
  // Backward: the gradient of q is added up there in f32, as libraries do.
  std::size_t workspace_bytes() const override;
  void run(const AttentionArguments& arguments, void* workspace) override;

 private:
  void forward(const AttentionArguments& arguments) const;
  void backward(const AttentionArguments& arguments, float* workspace) const;

  EmulatedDevice& device_;
  AttentionShape shape_;
};

}  // namespace mulligan::cuda
