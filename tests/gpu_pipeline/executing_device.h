// The GPU device over stubs of NVIDIA's libraries, whose kernels run. Before a function is loaded, it tells the stub of the
// driver what the function does. All else is GpuDevice's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "plugins/backends/cuda/cuda_backend.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"
#include "plugins/backends/cuda_emulated/block_runner.h"
#include "tests/stub/stub.h"

namespace mulligan::cuda {

class ExecutingDevice final : public Device {
 public:
  explicit ExecutingDevice(const CudaConfig& config)
      : gpu_(config.index, config.cache, config.kernel_file, config.threads, config.library_path) {}

  DeviceFacts facts() const override { return gpu_.facts(); }
  void* allocate(std::size_t bytes) override { return gpu_.allocate(bytes); }
  void free(void* address) noexcept override { gpu_.free(address); }
  void to_device(void* device, const void* host, std::size_t bytes) override {
    gpu_.to_device(device, host, bytes);
  }
  void from_device(void* host, const void* device, std::size_t bytes) override {
    gpu_.from_device(host, device, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { gpu_.copy(to, from, bytes); }
  void fill(void* device, int byte, std::size_t bytes) override { gpu_.fill(device, byte, bytes); }
  void expect(const FunctionRequest& request) override { gpu_.expect(request); }
  Function& load(const FunctionRequest& request) override;
  void launch(Function& function, const Grid& grid, std::span<const DeviceArgument> arguments) override {
    gpu_.launch(function, grid, arguments);
  }
  std::unique_ptr<Gemm> gemm(const GemmShape& shape) override { return gpu_.gemm(shape); }
  std::string measured() const override { return gpu_.measured(); }
  DeviceMade made() const override { return gpu_.made(); }
  std::string attention_missing() override { return gpu_.attention_missing(); }
  std::optional<std::size_t> attention_workspace_bytes(const AttentionShape& shape,
                                                       std::string& reason) override {
    return gpu_.attention_workspace_bytes(shape, reason);
  }
  void expect_attention(const AttentionShape& shape) override { gpu_.expect_attention(shape); }
  std::unique_ptr<Attention> attention(const AttentionShape& shape, std::string& reason) override {
    return gpu_.attention(shape, reason);
  }
  void begin_capture() override { gpu_.begin_capture(); }
  std::unique_ptr<CapturedGraph> end_capture() override { return gpu_.end_capture(); }
  void abandon_capture() noexcept override { gpu_.abandon_capture(); }
  void launch(CapturedGraph& graph) override { gpu_.launch(graph); }
  void synchronize() override { gpu_.synchronize(); }
  bool lost() const override { return gpu_.lost(); }
  void mark(std::uint32_t slot) override { gpu_.mark(slot); }
  void await(std::uint32_t slot) override { gpu_.await(slot); }
  mlg_queue queue() override { return gpu_.queue(); }

 private:
  StubKernel kernel_of(const mlg_cuda_launch& launch);

  // The stream's, which ends before them.
  BlockRunner runner_{EmulatedOrder::forward};
  std::vector<unsigned char> written_;  // as long as the longest allocation
  GpuDevice gpu_;
};

}  // namespace mulligan::cuda
