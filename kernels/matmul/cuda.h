// matmul and matmul_add are not kernels of source code: a library (cuBLASLt) computes them on a GPU, plain
// loops in emulation.
#pragma once

#include <mulligan/kernel.h>

#include <span>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

// The kernels' table entries, and whether a kernel is one of them (and was not replaced).
std::span<const mlg_kernel> matmul_kernels();
bool is_matmul(const mlg_kernel& kernel);

// The matmul that a call asks for. Throws std::runtime_error when its arguments do not fit.
GemmShape gemm_shape(const mlg_kernel& kernel, const mlg_launch& launch);

// Which arguments Gemm::run takes.
struct MatmulArguments {
  std::uint32_t a, b, term, c;
};
MatmulArguments matmul_arguments(const mlg_kernel& kernel);

}  // namespace mulligan::cuda
