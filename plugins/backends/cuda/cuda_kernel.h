// What every kernel of the cuda backend includes, as cpu_kernel.h does of the cpu backend.
#pragma once

#include <mulligan/cuda_kernel.hpp>

#include "plugins/backends/common/core_kernels.h"

namespace mulligan::cuda {

using backends::Register;
using sdk::CudaCall;

}  // namespace mulligan::cuda
