#include "plugins/backends/cuda/gpu/driver.h"

#include <stdexcept>

namespace mulligan::cuda {

Driver::Driver()
    : library_("NVIDIA's driver", {"libcuda.so.1"},
               "install it, or set backend.device = \"emulated\" to run the kernels on the processor") {
#define MLG_TEXT(real) #real
#define MLG_BIND(name, real) library_.bind(name, MLG_TEXT(real));
  MLG_DRIVER_FUNCTIONS(MLG_BIND)
#undef MLG_BIND
#undef MLG_TEXT
  check(Init(0), "cuInit");
}

void Driver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  if (GetErrorString(result, &text) != CUDA_SUCCESS || !text) text = "unknown error";
  throw std::runtime_error(std::string(call) + " failed: " + text + " (CUDA error " + std::to_string(result) +
                           ")");
}

}  // namespace mulligan::cuda
