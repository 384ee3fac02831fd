// The launches of a plan, made ready: functions loaded, arguments placed.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <functional>
#include <vector>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

class LaunchSteps {
 public:
  LaunchSteps() = default;
  // Loads the functions of `plan`, which must outlive this object, as must the device. `compiled` takes the
  // place of the source.
  LaunchSteps(Device& device, const char* kernel, const char* source, const mlg_cuda_plan& plan,
              const triton::CompiledKernel* compiled = nullptr);

  // `tensor` gives the memory of an argument by its index in the kernel's signature.
  void place(const std::function<DeviceArgument(std::uint32_t)>& tensor, void* workspace);
  void run();
  std::uint32_t size() const { return static_cast<std::uint32_t>(steps_.size()); }

 private:
  struct Step {
    Function* function = nullptr;
    Grid grid{};
    std::vector<DeviceArgument> arguments;
    const mlg_cuda_launch* launch = nullptr;
  };
  Device* device_ = nullptr;
  std::vector<Step> steps_;
};

// `bytes` bytes of workspace from `offset` on; empty for 0 bytes.
DeviceArgument workspace_argument(const mlg_cuda_argument& place, void* workspace);

}  // namespace mulligan::cuda
