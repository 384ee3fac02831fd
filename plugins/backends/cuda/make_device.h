// Which device a configuration asks for: the one place that knows them all. The PTX executor of the tests links the
// backend with a definition of its own.
#pragma once

#include <memory>

#include "plugins/backends/cuda/cuda_backend.h"

namespace mulligan::cuda {

// Throws std::runtime_error when there is no such device here.
std::unique_ptr<Device> make_device(const CudaConfig& config);

}  // namespace mulligan::cuda
