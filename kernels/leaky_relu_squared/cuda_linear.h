// The matmul that a call of linear_leaky_relu_squared begins with. The device's library computes it into memory that the
// activation's launch, planned in linear_leaky_relu_squared.cpp, then reads.
#pragma once

#include <mulligan/kernel.h>

#include <optional>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

struct MatmulBefore {
  std::uint32_t a, b, c;  // arguments of the call
  GemmShape shape;
};

// Nothing where `kernel` is another one, or was replaced. The call must have passed the kernel's checks.
std::optional<MatmulBefore> matmul_before(const mlg_kernel& kernel, const mlg_launch& call);

}  // namespace mulligan::cuda
