#include "plugins/backends/cuda/make_device.h"

#ifdef MULLIGAN_HAS_CUDA
#include "plugins/backends/cuda/compile/compile_device.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"
#endif
#include "plugins/backends/cuda/emulated/emulated_device.h"
#include "plugins/backends/cuda/plan_device.h"

namespace mulligan::cuda {

std::unique_ptr<Device> make_device(const CudaConfig& config) {
  if (config.device == "emulated") {
    const EmulatedOrder order = config.emulated_order == "forward"   ? EmulatedOrder::forward
                                : config.emulated_order == "reverse" ? EmulatedOrder::reverse
                                                                     : EmulatedOrder::interleaved;
    return std::make_unique<EmulatedDevice>(order, config.emulated_driver, config.log_launches);
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
