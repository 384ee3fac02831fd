// Replacements for the cuda backend: it reads no control-group limits and counts no compiled kernels.
#include "plugins/backends/cuda/compile/background_jobs.h"
#include "plugins/backends/cuda/cuda_backend.h"
#include "plugins/backends/cuda/gpu/cublaslt.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {

BackgroundJobs::BackgroundJobs(int threads)
    : most_threads_(threads > 0 ? threads : std::thread::hardware_concurrency()) {}
std::string GpuDevice::measured() const {
  return {};
}
std::string CublasLt::measured() const {
  return {};
}
void CudaBackend::replace_kernel(const char*, const char*) {}
DeviceMade GpuDevice::made() const {
  return {};
}
sdk::Made CudaBackend::made(std::uint32_t) const noexcept {
  return {};
}

}  // namespace mulligan::cuda
