// A stub of libcuda.so.1: what GpuDevice, the nccl communicator and a backend ask of it. As a real
// driver it exports no form of a function that came after its version, and hands
// out forms by cuGetProcAddress.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "tests/stub/driver_state.h"
#include "tests/stub/report.h"
#include "tests/stub/stub.h"

namespace {

Stub state;
std::mutex violation_mutex;
int context;

// Destroyed before the state that it tells of.
struct Report {
  ~Report() { stubs::report("driver", state.launches + state.copies, state.violation); }
} report;

}  // namespace

namespace stub_driver {

int answer() {
  const std::lock_guard lock(violation_mutex);
  return state.violation.empty() ? 0 : kIllegalAddress;
}
int violate(const std::string& sentence) {
  const std::lock_guard lock(violation_mutex);
  if (state.violation.empty()) state.violation = sentence;
  return kIllegalAddress;
}

}  // namespace stub_driver

using namespace stub_driver;

EXPORTED int cuEventElapsedTime(float* milliseconds, void* begin, void* end);

EXPORTED Stub& stub() {
  return state;
}
EXPORTED void stub_violates(const char* sentence) {
  violate(sentence);
}
EXPORTED bool stub_is_sound() {
  return answer() == 0;
}

EXPORTED int cuDriverGetVersion(int* version) {
  *version = state.driver_version;
  return 0;
}
EXPORTED int cuInit(unsigned) {
  return 0;
}
EXPORTED int cuGetErrorString(int, const char** text) {
  *text = "an error of the stub";
  return 0;
}
EXPORTED int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = state.devices;
  return 0;
}
EXPORTED int cuDeviceGetName(char* name, int, int) {
  std::strcpy(name, "Stand-in H100");
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;  // compute capability 9.0
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** retained, int) {
  *retained = &context;
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int) {
  return 0;
}
EXPORTED int cuCtxSetCurrent(void*) {
  return 0;
}
EXPORTED int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
EXPORTED int cuDeviceGetUuid_v2(unsigned char* uuid, int) {
  static std::atomic<unsigned char> asked = 0;
  std::memset(uuid, 0xAB, 16);
  if (!state.own_cards) return 0;
  const int process = getpid();
  std::memcpy(uuid, &process, sizeof process);
  uuid[15] = ++asked;
  return 0;
}
EXPORTED int cuCtxPushCurrent_v2(void*) {
  return 0;
}
EXPORTED int cuCtxPopCurrent_v2(void** popped) {
  *popped = &context;
  return 0;
}
// The newest form that CUDA `version` had. cuEventElapsedTime got its second in 12.8.
EXPORTED int cuGetProcAddress_v2(const char* name, void** address, int version, std::uint64_t, int*) {
  if (version > state.driver_version) return kInvalidValue;
  if (version >= 12080 && std::string_view(name) == "cuEventElapsedTime") {
    *address = reinterpret_cast<void*>(cuEventElapsedTime);
    return 0;
  }
  Dl_info own;
  dladdr(&state, &own);
  void* library = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  for (const char* form : {"_v2", ""}) {
    *address = dlsym(library, (std::string(name) + form).c_str());
    if (*address) break;
  }
  dlclose(library);
  return *address ? 0 : kNotFound;
}
