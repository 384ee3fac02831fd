// The backend's device in these tests, whichever the configuration asks for.
#include "plugins/backends/cuda/cuda_backend.h"

#include <cstdlib>
#include <string>

#include "tests/ptx/ptx_device.h"

namespace mulligan::cuda {

std::unique_ptr<Device> make_device(const CudaConfig& config) {
  const char* opcodes = std::getenv("MULLIGAN_PTX_OPCODES");
  // PTX, not machine code: the architecture is a virtual one.
  return std::make_unique<ptx::PtxDevice>(
      emulated_order(config.emulated_order),
      CompilerOptions{"compute_90a", MULLIGAN_PTX_CACHE, {}, config.threads}, opcodes ? opcodes : "");
}

}  // namespace mulligan::cuda
