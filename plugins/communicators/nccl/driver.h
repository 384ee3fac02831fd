// The few functions of NVIDIA's driver that order NCCL's work and the backend's. Declared here, so that
// CUDA's headers are not needed to build.
#pragma once

#include <stdexcept>
#include <string>

#include "plugins/common/shared_library.h"

namespace mulligan::nccl_ranks {

using CudaContext = void*;
using CudaStream = void*;
using CudaEvent = void*;

struct CudaDriver {
  // Throws std::runtime_error that names the call when `result` is an error.
  void check(int result, const char* call) const {
    if (result == 0) return;
    const char* text = nullptr;
    GetErrorString(result, &text);
    throw std::runtime_error(std::string("cu") + call + " failed: " + (text ? text : "an unknown error"));
  }

  plugins::SharedLibrary library{
      "NVIDIA's driver", {"libcuda.so.1"}, "install it, or take another communicator"};
  int (*CtxPushCurrent)(CudaContext) = library["cuCtxPushCurrent_v2"];
  int (*CtxPopCurrent)(CudaContext*) = library["cuCtxPopCurrent_v2"];
  int (*CtxGetDevice)(int* device) = library["cuCtxGetDevice"];
  int (*DeviceGetUuid)(unsigned char (*uuid)[16], int device) = library["cuDeviceGetUuid_v2"];
  int (*StreamCreate)(CudaStream*, unsigned flags) = library["cuStreamCreate"];
  int (*StreamDestroy)(CudaStream) = library["cuStreamDestroy_v2"];
  int (*StreamWaitEvent)(CudaStream, CudaEvent, unsigned flags) = library["cuStreamWaitEvent"];
  int (*EventCreate)(CudaEvent*, unsigned flags) = library["cuEventCreate"];
  int (*EventDestroy)(CudaEvent) = library["cuEventDestroy_v2"];
  int (*EventRecord)(CudaEvent, CudaStream) = library["cuEventRecord"];
  int (*EventQuery)(CudaEvent) = library["cuEventQuery"];
  int (*GetErrorString)(int, const char**) = library["cuGetErrorString"];
};

inline constexpr unsigned kNonBlockingStream = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kUntimedEvent = 2;       // CU_EVENT_DISABLE_TIMING
inline constexpr int kNotReady = 600;              // CUDA_ERROR_NOT_READY

// Makes the context the calling thread's for as long as it lives.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, CudaContext context) : driver_(driver) {
    driver_.check(driver_.CtxPushCurrent(context), "CtxPushCurrent");
  }
  ~CurrentContext() {
    CudaContext popped = nullptr;
    driver_.CtxPopCurrent(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaDriver& driver_;
};

}  // namespace mulligan::nccl_ranks
