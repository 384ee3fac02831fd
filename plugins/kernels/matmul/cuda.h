// matmul and matmul_add are not kernels of source code: a library (cuBLASLt) computes them on a GPU, plain
// loops in emulation.
#pragma once

#include <mulligan/kernel.h>

#include <span>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

// The kernels' table entries, and whether a kernel is one of them (and was not replaced).
std::span<const mlg_kernel> product_kernels();
bool is_product(const mlg_kernel& kernel);

// The matmul that a call asks for. Throws std::runtime_error when its arguments do not fit.
GemmShape gemm_shape(const mlg_kernel& kernel, const mlg_launch& launch);

// Which arguments Gemm::run takes.
struct ProductArguments {
  std::uint32_t a, b, term, c;
};
ProductArguments product_arguments(const mlg_kernel& kernel);

}  // namespace mulligan::cuda
