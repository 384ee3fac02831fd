// Replacements for the cuda backend: it reads no control-group limits, counts no compiled kernels and warns of nothing.
#include "plugins/backends/cuda/attention/attention_library.h"
#include "plugins/backends/cuda/compile/background_jobs.h"
#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/cuda_backend.h"
#include "plugins/backends/cuda/gpu/cublaslt.h"
#include "plugins/backends/cuda/gpu/cudnn/functions.h"
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
DeviceFacts GpuDevice::facts() const {
  return {"", free_bytes_, 0, true, architecture_};
}
std::string cuda_library_remedy(int) {
  return {};
}
// An evaluation ends with the first error, whatever it is.
void Driver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  lost_ = true;
  throw std::runtime_error(std::string(call) + " failed: CUDA error " + std::to_string(result));
}
std::string describe(const AttentionShape&) {
  return "attention";
}
void AttentionLibrary::say_once(const std::string&) {}
void AttentionLibrary::leave_to_own_kernel() {}
void AttentionLibrary::leave(const AttentionShape&) {
  stand_in("attention of more than 32,768 segments", "");
}
void AttentionLibrary::stand_in(const std::string& reason, const std::string&) {
  if (choice_.required) throw std::runtime_error(reason);
}
void CudaBackend::replace_kernel(const char*, const char*) {}
DeviceMade GpuDevice::made() const {
  return {};
}
sdk::Made CudaBackend::made(std::uint32_t) const noexcept {
  return {};
}

}  // namespace mulligan::cuda

namespace mulligan::cuda::cudnn {

std::string cudnn_remedy(int) {
  return {};
}
std::string nvrtc_remedy(int) {
  return {};
}

}  // namespace mulligan::cuda::cudnn
