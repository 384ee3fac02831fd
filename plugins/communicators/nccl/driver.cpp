#include "plugins/communicators/nccl/driver.h"

#include <stdexcept>

namespace mulligan::nccl_ranks {

CudaDriver::CudaDriver()
    : library("NVIDIA's driver", {"libcuda.so.1"}, "install it, or take another communicator") {
  library.bind(CtxPushCurrent, "cuCtxPushCurrent_v2");
  library.bind(CtxPopCurrent, "cuCtxPopCurrent_v2");
  library.bind(CtxGetDevice, "cuCtxGetDevice");
  library.bind(DeviceGetUuid, "cuDeviceGetUuid_v2");
  library.bind(StreamCreate, "cuStreamCreate");
  library.bind(StreamDestroy, "cuStreamDestroy_v2");
  library.bind(StreamWaitEvent, "cuStreamWaitEvent");
  library.bind(EventCreate, "cuEventCreate");
  library.bind(EventDestroy, "cuEventDestroy_v2");
  library.bind(EventRecord, "cuEventRecord");
  library.bind(EventQuery, "cuEventQuery");
  library.bind(GetErrorString, "cuGetErrorString");
}

void CudaDriver::check(int result, const char* call) const {
  if (result == 0) return;
  const char* text = nullptr;
  GetErrorString(result, &text);
  throw std::runtime_error(std::string("cu") + call + " failed: " + (text ? text : "an unknown error"));
}

}  // namespace mulligan::nccl_ranks
