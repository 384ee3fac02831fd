#include "plugins/backends/cuda/gpu/driver.h"

#include <algorithm>
#include <stdexcept>

#include "plugins/backends/cuda/compile/cuda_library.h"

namespace mulligan::cuda {
namespace {

constexpr int kOldest = 12040;

// The errors of which cuda.h says that the process must be ended to use the GPU again.
bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

}  // namespace

#define MLG_TEXT(real) #real
#define MLG_NEWEST(real) MLG_TEXT(real)  // the name that the header's macro gives it

Driver::Driver()
    : library_("NVIDIA's driver", {"libcuda.so.1"},
               "install it, or set backend.device = \"emulated\" to run the kernels on the CPU") {
  const decltype(&::cuDriverGetVersion) get_version = library_["cuDriverGetVersion"];
  if (get_version(&version_) != CUDA_SUCCESS || version_ < kOldest) {
    throw std::runtime_error(
        "NVIDIA's driver is of CUDA " + cuda_version_text(version_) +
        "; install one of CUDA 12.4 or newer, or set backend.device = \"emulated\" to run "
        "the kernels on the CPU");
  }
  get_address_ = library_[MLG_NEWEST(cuGetProcAddress)];
#define MLG_BIND(name) name = reinterpret_cast<decltype(name)>(function("cu" #name, MLG_NEWEST(cu##name)));
  MLG_DRIVER_FUNCTIONS(MLG_BIND)
#undef MLG_BIND
  check(Init(0), "cuInit");
}

#undef MLG_NEWEST
#undef MLG_TEXT

void* Driver::function(const char* name, const char* newest) const {
  void* address = nullptr;
  const CUresult result = get_address_(name, &address, std::min(version_, CUDA_VERSION),
                                       CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr);
  if (result == CUDA_SUCCESS && address) return address;
  return library_.symbol(newest);
}

void Driver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  if (is_sticky(result)) lost_ = true;
  const char* text = nullptr;
  if (GetErrorString(result, &text) != CUDA_SUCCESS || !text) text = "unknown error";
  throw std::runtime_error(std::string(call) + " failed: " + text + " (CUDA error " + std::to_string(result) +
                           ")");
}

}  // namespace mulligan::cuda
