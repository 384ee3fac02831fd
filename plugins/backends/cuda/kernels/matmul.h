// matmul is no kernel of source code: a library (cuBLASLt) computes it on a GPU, plain loops in emulation.
#pragma once

#include <mulligan/kernel.h>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

// The kernel's table entry, and whether a kernel is it (and was not replaced).
const mlg_kernel& matmul_kernel();
bool is_matmul(const mlg_kernel& kernel);

// The product that a call asks for. Throws std::runtime_error when its arguments do not fit.
GemmShape gemm_shape(const mlg_kernel& kernel, const mlg_launch& launch);

}  // namespace mulligan::cuda
