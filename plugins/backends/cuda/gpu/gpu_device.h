// A real GPU through NVIDIA's driver, NVRTC, cuBLASLt and cuDNN.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "plugins/backends/cuda/compile/kernel_compiler.h"
#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda/gpu/driver.h"
#include "plugins/backends/cuda/gpu/staging_ring.h"

namespace mulligan::cuda {

class CublasLt;
class Cudnn;
struct GpuFunction;

class GpuDevice final : public Device {
 public:
  // GPU `index` of those that CUDA_VISIBLE_DEVICES leaves. `kernel_file` as of kernel_file_for(), `threads`
  // as of CompilerOptions and Cudnn. Throws std::runtime_error in one sentence when there is none.
  GpuDevice(int index, const std::string& cache_directory, const std::string& kernel_file = {},
            int threads = 0, const std::string& library_path = {});
  ~GpuDevice() override;

  DeviceFacts facts() const override;
  void* allocate(std::size_t bytes) override;
  void free(void* address) noexcept override;
  void to_device(void* device, const void* host, std::size_t bytes) override;
  void from_device(void* host, const void* device, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill(void* device, int byte, std::size_t bytes) override;
  void expect(const FunctionRequest& request) override;
  Function& load(const FunctionRequest& request) override;
  void launch(Function& function, const Grid& grid, std::span<const DeviceArgument> arguments) override;
  std::unique_ptr<Gemm> gemm(const GemmShape& shape) override;
  std::string measured() const override;
  DeviceMade made() const override;
  std::string attention_missing() override;
  std::optional<std::size_t> attention_workspace_bytes(const AttentionShape& shape,
                                                       std::string& reason) override;
  void expect_attention(const AttentionShape& shape) override;
  std::unique_ptr<Attention> attention(const AttentionShape& shape, std::string& reason) override;
  void begin_capture() override;
  std::unique_ptr<CapturedGraph> end_capture() override;
  void abandon_capture() noexcept override;
  void launch(CapturedGraph& graph) override;
  void synchronize() override;
  bool lost() const override { return driver_.lost(); }
  void mark(std::uint32_t slot) override;
  void await(std::uint32_t slot) override;
  mlg_queue queue() override { return {MLG_QUEUE_CUDA, stream_, context_}; }

  // For libraries that go with this GPU's driver.
  LibrarySearch libraries() const { return {driver_.version(), library_path_}; }
  const Driver& driver() const { return driver_; }
  CUstream stream() const { return stream_; }
  // Makes the GPU's context the calling thread's.
  void use() const { MLG_CU(driver_, CtxSetCurrent, context_); }

 private:
  std::unique_ptr<GpuFunction> make_function(const FunctionRequest& request, const FunctionSource& source);

  Driver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::string name_, architecture_;
  int major_ = 0;                                 // of the compute capability
  std::size_t free_bytes_ = 0, total_bytes_ = 0;  // of memory, as the device was made
  std::string cache_directory_, library_path_;
  int threads_ = 0;  // that compile kernels and make plans; 0: one for each core
  std::unique_ptr<KernelCompiler> compiler_;
  std::unique_ptr<CublasLt> blas_;  // made with the first matmul
  std::unique_ptr<Cudnn> cudnn_;    // made when it is first asked for
  std::map<FunctionSource, std::unique_ptr<GpuFunction>> functions_;
  std::optional<StagingRing> staging_;
  std::array<CUevent, MLG_MARKS> marks_{};  // null until a slot is first used
};

}  // namespace mulligan::cuda
