// Whether the function that NVRTC compiled is the one that a launch means.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <string>

namespace mulligan::cuda {

// `symbol`: the mangled name of the function. Throws std::runtime_error when it is not the launch's function,
// or when its parameters are not the launch's arguments, in number and kind. A symbol that is not mangled
// (extern "C") tells nothing and passes.
void require_parameters(const char* kernel, const std::string& symbol, const mlg_cuda_launch& launch);

}  // namespace mulligan::cuda
