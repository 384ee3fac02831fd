// The cuda backend without looks at the limits of control groups and counts of what it has made.
#include "framework/core/parallel.h"
#include "plugins/backends/cuda/compile/background_jobs.h"
#include "plugins/backends/cuda/cuda_backend.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan {

// Kernels have a member of its name, and nothing else calls it.
void parallel_for(std::size_t, int, const std::function<void(std::size_t)>&) {}

namespace cuda {

BackgroundJobs::BackgroundJobs(int threads)
    : most_threads_(threads > 0 ? threads : std::thread::hardware_concurrency()) {}
std::string GpuDevice::measured() const {
  return {};
}
DeviceMade GpuDevice::made() const {
  return {};
}
sdk::Made CudaBackend::made(std::uint32_t) const noexcept {
  return {};
}

}  // namespace cuda
}  // namespace mulligan
