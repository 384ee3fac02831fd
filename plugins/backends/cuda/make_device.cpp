#include "plugins/backends/cuda/cuda_backend.h"

#ifdef MULLIGAN_HAS_CUDA
#include "plugins/backends/cuda/compile/compile_device.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"
#endif
#include "plugins/backends/cuda/plan_device.h"
#include "plugins/backends/cuda_emulated/open.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda {

std::unique_ptr<Device> make_device(const CudaConfig& config) {
  if (config.device == "emulated") {
    const plugins::SharedLibrary library(
        "The emulated device", {(plugins::own_folder().parent_path() / kEmulatedLibrary).string()},
        "build the target mulligan_cuda_emulated, or install the library there");
    decltype(mulligan_emulated_device)* open = library["mulligan_emulated_device"];
    return std::unique_ptr<Device>(open(sdk::host_services, config.emulated_order.c_str(),
                                        config.emulated_driver.c_str(), config.log_launches));
  }
  if (config.device == "plan") return std::make_unique<PlanDevice>();
#ifdef MULLIGAN_HAS_CUDA
  const std::string cache = config.cache.empty() ? default_cache_directory() : config.cache;
  if (config.device == "compile") {
    return std::make_unique<CompileDevice>(
        CompilerOptions{config.architecture, cache, {0, config.library_path}, config.threads},
        config.kernel_file, config.cubins);
  }
  return std::make_unique<GpuDevice>(config.index, cache, config.kernel_file, config.threads,
                                     config.library_path);
#else
  throw sdk::Error("this program was built without CUDA, so backend.device = \"" + config.device +
                   "\" cannot be had; build it where CUDA 12.4 or newer is installed, or set \"emulated\"");
#endif
}

}  // namespace mulligan::cuda
