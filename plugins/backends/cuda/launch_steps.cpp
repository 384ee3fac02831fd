#include "plugins/backends/cuda/launch_steps.h"

#include <algorithm>

namespace mulligan::cuda {

LaunchSteps::LaunchSteps(Device& device, const char* kernel, const char* source, const mlg_cuda_plan& plan,
                         const triton::CompiledKernel* compiled)
    : device_(&device) {
  for (std::uint32_t i = 0; i < plan.launch_count; ++i) {
    Step& step = steps_.emplace_back();
    step.launch = &plan.launches[i];
    std::copy_n(step.launch->grid, 3, step.grid.blocks);
    std::copy_n(step.launch->block, 3, step.grid.threads);
    step.grid.shared_bytes = step.launch->shared_bytes;
    step.function = &device.load({kernel, source, step.launch, compiled});
  }
}

void LaunchSteps::place(const std::function<DeviceArgument(std::uint32_t)>& tensor, void* workspace) {
  for (Step& step : steps_) {
    step.arguments.clear();
    for (std::uint32_t i = 0; i < step.launch->argument_count; ++i) {
      const mlg_cuda_argument& wanted = step.launch->arguments[i];
      DeviceArgument argument;
      if (wanted.kind == MLG_CUDA_TENSOR) argument = tensor(wanted.index);
      if (wanted.kind == MLG_CUDA_WORKSPACE) argument = workspace_argument(wanted, workspace);
      argument.value = wanted;
      step.arguments.push_back(argument);
    }
  }
}

void LaunchSteps::run() {
  for (Step& step : steps_) device_->launch(*step.function, step.grid, step.arguments);
}

DeviceArgument workspace_argument(const mlg_cuda_argument& place, void* workspace) {
  DeviceArgument argument;
  if (place.bytes == 0) return argument;
  argument.address = static_cast<char*>(workspace) + place.offset;
  argument.bytes = place.bytes;
  argument.name = "the workspace";
  return argument;
}

}  // namespace mulligan::cuda
