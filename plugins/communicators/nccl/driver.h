// The few functions of NVIDIA's driver that order NCCL's work and the backend's. Declared here, so that
// CUDA's headers are not needed to build.
#pragma once

#include "plugins/common/shared_library.h"

namespace mulligan::nccl_ranks {

using CudaContext = void*;
using CudaStream = void*;
using CudaEvent = void*;

struct CudaDriver {
  CudaDriver();  // throws std::runtime_error in one sentence without a driver

  // Throws std::runtime_error that names the call when `result` is an error.
  void check(int result, const char* call) const;

  plugins::SharedLibrary library;
  int (*CtxPushCurrent)(CudaContext);
  int (*CtxPopCurrent)(CudaContext*);
  int (*CtxGetDevice)(int* device);
  int (*DeviceGetUuid)(unsigned char (*uuid)[16], int device);
  int (*StreamCreate)(CudaStream*, unsigned flags);
  int (*StreamDestroy)(CudaStream);
  int (*StreamWaitEvent)(CudaStream, CudaEvent, unsigned flags);
  int (*EventCreate)(CudaEvent*, unsigned flags);
  int (*EventDestroy)(CudaEvent);
  int (*EventRecord)(CudaEvent, CudaStream);
  int (*EventQuery)(CudaEvent);
  int (*GetErrorString)(int, const char**);
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
