// The cuda backend: the host's calls turned into launches on a device (device.h).
#pragma once

#include <mulligan/backend.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "plugins/backends/common/kernel_registry.h"
#include "plugins/backends/cuda/attention/attention_library.h"
#include "plugins/backends/cuda/call_graphs.h"
#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {

struct CudaConfig {
  std::string device = "gpu";
  int index = -1;
  bool graphs = true;
  std::string cache;
  std::string kernel_file;
  std::string library_path;
  int threads = 0;
  std::string attention = "library";
  bool require_library = false;
  bool deterministic = false;
  bool batch_invariant = false;
  std::string architecture = "sm_90a";
  std::string cubins;
  std::string emulated_order = "forward";
  std::string emulated_driver;
  bool log_launches = false;
};

// Which device a configuration asks for: the one place that knows them all. Tests link the backend with definitions of
// their own. Throws std::runtime_error when there is no such device here.
std::unique_ptr<Device> make_device(const CudaConfig& config);

class CudaBackend final : public sdk::Backend {
 public:
  static constexpr const char* summary =
      "NVIDIA GPUs: kernels compiled at run time, cuBLASLt and cuDNN; or the same kernels "
      "emulated on the CPU.";
  static inline const sdk::Schema<CudaConfig> schema{
      sdk::key("device", &CudaConfig::device,
               "gpu: the machine's GPU; emulated: the kernels run on the CPU under memory and race "
               "checks; compile: every kernel is compiled, none runs; plan: every call is planned, none is "
               "compiled or runs.")
          .choices("gpu|emulated|compile|plan"),
      sdk::key("index", &CudaConfig::index,
               "Which of the visible GPUs, from 0 on; -1: the only one, or that of the rank's number on its "
               "machine.")
          .range(-1, 1023),
      sdk::key("graphs", &CudaConfig::graphs,
               "Repeated lists of kernel calls are captured and launched as CUDA graphs."),
      sdk::key("cache", &CudaConfig::cache,
               "Folder of compiled kernels and measured algorithms; empty: $XDG_CACHE_HOME/mulligan/cuda or "
               "~/.cache/mulligan/cuda."),
      sdk::key("kernel_file", &CudaConfig::kernel_file,
               "File of kernels that were compiled ahead of time (mulligan plugins kernels): gpu looks into "
               "it before the cache, and where this is empty into ../kernels/ARCHITECTURE.kernels "
               "next to the plugins (\"none\": into no file); compile adds to it what it compiles."),
      sdk::key(
          "library_path", &CudaConfig::library_path,
          "Folders, separated by ':', in which NVRTC, cuBLASLt and cuDNN are looked for first; then follow "
          "NVIDIA's wheels of the active Python (nvidia-cudnn-cu12 and others), then the system's."),
      sdk::key("threads", &CudaConfig::threads,
               "Kernels that are compiled at the same time; 0: as many as there are cores.")
          .range(0, 4096),
      sdk::key(
          "attention", &CudaConfig::attention,
          "library: bf16 attention by cuDNN where it is installed and has a plan (the emulated device has "
          "one of its own); own: attention by the own kernel.")
          .choices("own|library"),
      sdk::key(
          "require_library", &CudaConfig::require_library,
          "A run whose bf16 or f16 attention the device's library does not compute (it is missing, too old, has "
          "no plan, or is not asked for such heads) is refused; false: the own kernel computes it, and a warning "
          "says how much slower. [run] require_libraries sets it."),
      sdk::key("deterministic", &CudaConfig::deterministic,
               "The same run twice gives the same bits: a library's backward pass of attention, whose sums "
               "may have no fixed order, is left to the own kernel."),
      sdk::key("batch_invariant", &CudaConfig::batch_invariant,
               "What is computed of a row does not depend on how many rows are computed with it: matmuls "
               "and attention by own kernels, in place of cuBLASLt and cuDNN; slow. [run] determinism sets "
               "it."),
      sdk::key("architecture", &CudaConfig::architecture,
               "What device = \"compile\" compiles for; a GPU is compiled for as it is."),
      sdk::key("cubins", &CudaConfig::cubins,
               "Folder that device = \"compile\" writes the machine code of each function to, with a table, "
               "functions.tsv; empty: none is written."),
      sdk::key("emulated_order", &CudaConfig::emulated_order,
               "Order in which the emulated device runs blocks and threads; results must not depend on it.")
          .choices("forward|reverse|interleaved"),
      sdk::key(
          "emulated_driver", &CudaConfig::emulated_driver,
          "For tests of communicators: a library with the driver's streams, on which the emulated device "
          "works asynchronously; empty: each call ends when its work has."),
      sdk::key("log_launches", &CudaConfig::log_launches,
               "The emulated device writes each launch and each call of a library to the log.")};

  explicit CudaBackend(const CudaConfig& config);

  sdk::DeviceInfo info() const override;
  void* allocate(std::size_t bytes) override;
  void free(void* address) noexcept override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void zero(void* device, std::size_t bytes) override;
  void add_kernels(std::span<const mlg_kernel> kernels, bool replace) override;
  void replace_kernel(const char* name, const char* path) override;
  const mlg_kernel* kernel_at(std::uint32_t index) const noexcept override;
  void* prepare(const sdk::Call& call, std::size_t& workspace_bytes) override;
  void bind(void* prepared, void* const* addresses, void* workspace) override;
  void run(std::span<void* const> prepared) override;
  void release(void* prepared) noexcept override;
  void synchronize() override;
  void mark(std::uint32_t slot) override { device_->mark(slot); }
  void await(std::uint32_t slot) override { device_->await(slot); }
  mlg_queue queue() override { return device_->queue(); }
  mlg_work work(void* prepared) override;
  sdk::Made made(std::uint32_t index) const noexcept override;
  // Kernels add in fixed orders, without atomics on floats; cuBLASLt's algorithm is chosen once per shape and
  // kept. A library's attention promises it only where `deterministic` is set; of compiled code that a user
  // put in the kernels' place nothing is known. Rows of tokens are independent in all but the libraries, which
  // `batch_invariant` does without (invariant_kernels.h).
  mlg_determinism determinism() const noexcept override {
    if (!compiled_.empty() || !attention_.deterministic()) return MLG_DETERMINISM_NONE;
    return batch_invariant_ ? MLG_DETERMINISM_BATCH : MLG_DETERMINISM_RUN;
  }

 private:
  std::unique_ptr<Device> device_;
  DeviceFacts facts_;
  backends::KernelRegistry kernels_{"cuda"};
  std::map<std::string, triton::CompiledKernel, std::less<>> compiled_;  // in place of kernels of these names
  bool batch_invariant_;
  AttentionLibrary attention_;
  CallGraphs graphs_;
  std::string measured_;         // as the log knows it
  bool release_failed_ = false;  // logged
};

}  // namespace mulligan::cuda
