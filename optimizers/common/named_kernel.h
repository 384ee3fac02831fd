// Kernels of this folder under the name of the plugin that brings them, for no two plugins of a run may bring kernels of
// one name: "momentum" is muon_momentum in muon.
#pragma once

#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

#include <string>

namespace mulligan::optimizers {

// The kernel under another name. `name` has static storage.
template <typename Kernel>
mlg_kernel cpu_kernel_as(const char* name) {
  mlg_kernel kernel = sdk::cpu_kernel<Kernel>();
  kernel.name = name;
  return kernel;
}
inline mlg_kernel kernel_as(mlg_kernel kernel, const char* name) {
  kernel.name = name;
  return kernel;
}

// Launches the kernel that plugin `optimizer` brings as OPTIMIZER_NAME.
template <typename Kernel>
void launch_named(sdk::Recorder& recorder, const std::string& optimizer,
                  std::initializer_list<sdk::Value> arguments,
                  std::initializer_list<sdk::Attribute> attributes = {}) {
  recorder.launch((optimizer + '_' + Kernel::name).c_str(), arguments, attributes);
}

}  // namespace mulligan::optimizers
