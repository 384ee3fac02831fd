// NVIDIA's driver API, loaded when it is needed. Members are called like the functions of
// cuda.h, without "cu".
//
// A function has several forms, of which cuda.h names the newest ("cuEventElapsedTime_v2") and an older
// driver has an older one. The driver is therefore asked for the form of its own CUDA version, where that is
// older than the headers. None of the functions below has changed its parameters since CUDA 12.4.
#pragma once

#include <cuda.h>

#include <atomic>

#include "plugins/common/shared_library.h"

namespace mulligan::cuda {

// clang-format off
#define MLG_DRIVER_FUNCTIONS(X)                                                                  \
  X(Init) X(GetErrorString) X(DeviceGet) X(DeviceGetCount) X(DeviceGetName)                      \
  X(DeviceGetAttribute) X(MemGetInfo) X(DevicePrimaryCtxRetain) X(DevicePrimaryCtxRelease)       \
  X(CtxSetCurrent) X(StreamCreate) X(StreamDestroy) X(StreamSynchronize) X(StreamBeginCapture)   \
  X(StreamEndCapture) X(GraphInstantiateWithFlags) X(GraphLaunch) X(GraphDestroy)                \
  X(GraphExecDestroy) X(EventCreate) X(EventRecord) X(EventSynchronize) X(EventElapsedTime)      \
  X(EventDestroy) X(MemAlloc) X(MemFree) X(MemAllocHost) X(MemFreeHost) X(MemcpyHtoDAsync)       \
  X(MemcpyDtoHAsync) X(MemcpyDtoDAsync) X(MemsetD8Async) X(ModuleLoadData) X(ModuleUnload)       \
  X(ModuleGetFunction) X(FuncSetAttribute) X(LaunchKernel)
// clang-format on

class Driver {
 public:
  // Opens the library and initialises it. Throws std::runtime_error in one sentence without a driver of
  // CUDA 12.4 or newer, or a GPU.
  Driver();

  int version() const { return version_; }  // 12040: CUDA 12.4

#define MLG_MEMBER(name) decltype(&::cu##name) name = nullptr;
  MLG_DRIVER_FUNCTIONS(MLG_MEMBER)
#undef MLG_MEMBER

  // Throws std::runtime_error that names the call when `result` is an error.
  void check(CUresult result, const char* call) const;
  // check() has seen an error after which every call of this process fails, such as an illegal address.
  bool lost() const {
    return lost_;
  }

 private:
  void* function(const char* name, const char* newest) const;

  plugins::SharedLibrary library_;
  decltype(&::cuGetProcAddress) get_address_ = nullptr;
  int version_ = 0;
  mutable std::atomic<bool> lost_ = false;
};

// MLG_CU(driver, MemAlloc, &address, bytes): cuMemAlloc, checked.
#define MLG_CU(driver, name, ...) (driver).check((driver).name(__VA_ARGS__), "cu" #name)

}  // namespace mulligan::cuda
