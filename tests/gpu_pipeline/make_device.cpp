// The backend's device where a configuration asks for a GPU in these tests; others are not there.
#include "plugins/backends/cuda/cuda_backend.h"

#include <stdexcept>

#include "plugins/backends/cuda/plan_device.h"
#include "tests/gpu_pipeline/executing_device.h"
#include "tests/stub/stub.h"

namespace mulligan::cuda {

std::unique_ptr<Device> make_device(const CudaConfig& config) {
  if (config.device == "plan") return std::make_unique<PlanDevice>();
  if (config.device != "gpu") throw std::runtime_error("these tests have the devices gpu and plan");
  Stub& libraries = stub();
  libraries.computes = libraries.captures = true;
  libraries.devices = 2;
  libraries.fresh_byte = 0xFF;  // not a number, as f32 and as bf16
  return std::make_unique<ExecutingDevice>(config);
}

}  // namespace mulligan::cuda
