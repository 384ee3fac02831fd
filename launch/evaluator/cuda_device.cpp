// The cuda backend of an evaluation: a GPU, kernels compiled there or taken from the cache, and none in another's place.
#include "plugins/backends/cuda/cuda_backend.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {

std::unique_ptr<Device> make_device(const CudaConfig& config) {
  return std::make_unique<GpuDevice>(
      config.index, config.cache.empty() ? default_cache_directory() : config.cache, "none", config.threads);
}

// No files of functions compiled ahead of time.
std::optional<KernelFile> kernel_file_for(const CompilerOptions&, const std::string&) {
  return {};
}
const CompiledFunction* KernelFile::find(const FunctionSource&) const {
  return nullptr;
}

}  // namespace mulligan::cuda
