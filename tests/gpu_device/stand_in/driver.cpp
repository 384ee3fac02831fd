// A stand-in for libcuda.so.1 with one GPU and what GpuDevice asks of it. As a real driver it exports no form of a
// function that came after its version, and hands out forms by cuGetProcAddress.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/gpu_device/stand_in/stand_in.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalidValue = 1, kNotSupported = 801, kNotFound = 500, kIllegalAddress = 700;

StandIn state;
std::map<const char*, Allocation> allocations;  // by base; freed ones stay until their place is given anew
std::deque<std::function<void()>> held;
using Graph = std::vector<std::function<void()>>;
Graph captured;

void work_off() {
  for (; !held.empty(); held.pop_front()) held.front()();
}
int answer() {
  return state.violation.empty() ? 0 : kIllegalAddress;
}
int enqueue(std::function<void()> work) {
  if (!state.violation.empty()) return kIllegalAddress;
  if (state.capturing) {
    captured.push_back(std::move(work));
    return 0;
  }
  held.push_back(std::move(work));
  if (!state.hold) work_off();
  return 0;
}

int violate(const std::string& sentence) {
  if (state.violation.empty()) state.violation = sentence;
  return answer();
}
// What a capture does not allow, and a real driver answers by ending it.
bool refused_in_capture(const char* call) {
  if (state.capturing) violate(std::string(call) + ": within a capture of the stream");
  return state.capturing;
}

struct Event {
  int recorded = 0, reached = 0;
  int products = 0;  // that had been asked for when it was recorded
};
int handle;

}  // namespace

EXPORTED StandIn& stand_in() {
  return state;
}

EXPORTED bool stand_in_touches(const char* call, const char* argument, const void* address,
                               std::size_t bytes) {
  const auto* at = static_cast<const char*>(address);
  auto found = allocations.upper_bound(at);
  const bool known = found != allocations.begin() &&
                     at < std::prev(found)->first + std::max<std::size_t>(std::prev(found)->second.bytes, 1);
  std::string fault;
  if (!known) {
    fault = " where nothing was allocated";
  } else {
    const auto& [base, allocation] = *std::prev(found);
    const auto offset = static_cast<std::size_t>(at - base);
    if (allocation.freed) {
      fault = " of an allocation of " + std::to_string(allocation.bytes) + " that was freed";
    } else if (bytes > allocation.bytes - offset) {
      fault =
          ", " + std::to_string(offset) + " bytes into an allocation of " + std::to_string(allocation.bytes);
    }
  }
  if (fault.empty()) return true;
  violate(std::string(call) + ": argument " + argument + " takes " + std::to_string(bytes) + " bytes" +
          fault);
  return false;
}
EXPORTED bool stand_in_capturing() {
  return state.capturing;
}
EXPORTED void stand_in_violates(const char* sentence) {
  violate(sentence);
}

EXPORTED int cuDriverGetVersion(int* version) {
  *version = state.driver_version;
  return 0;
}
EXPORTED int cuInit(unsigned) {
  return 0;
}
EXPORTED int cuGetErrorString(int, const char** text) {
  *text = "an error of the stand-in";
  return 0;
}
EXPORTED int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = 1;
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
EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{80} << 30;
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &handle;
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int) {
  return 0;
}
EXPORTED int cuCtxSetCurrent(void*) {
  return 0;
}
EXPORTED int cuStreamCreate(void** stream, unsigned) {
  *stream = &handle;
  return 0;
}
EXPORTED int cuStreamDestroy_v2(void*) {
  return 0;
}
EXPORTED int cuStreamSynchronize(void*) {
  if (refused_in_capture("cuStreamSynchronize")) return answer();
  work_off();
  return answer();
}
EXPORTED int cuStreamBeginCapture_v2(void*, int) {
  if (refused_in_capture("cuStreamBeginCapture")) return answer();
  if (!state.captures) return kNotSupported;
  state.capturing = true;
  captured.clear();
  return answer();
}
EXPORTED int cuStreamEndCapture(void*, void** graph) {
  if (!state.capturing) return kNotSupported;
  state.capturing = false;
  *graph = new Graph(std::exchange(captured, {}));
  return answer();
}
EXPORTED int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  *executable = new Graph(*static_cast<Graph*>(graph));
  return answer();
}
EXPORTED int cuGraphLaunch(void* executable, void*) {
  if (refused_in_capture("cuGraphLaunch")) return answer();
  ++state.graph_launches;
  for (const auto& work : *static_cast<Graph*>(executable)) enqueue(work);
  return answer();
}
EXPORTED int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return 0;
}
EXPORTED int cuGraphExecDestroy(void* executable) {
  delete static_cast<Graph*>(executable);
  return 0;
}
EXPORTED int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return 0;
}
EXPORTED int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
EXPORTED int cuEventRecord(void* event, void*) {
  auto* mark = static_cast<Event*>(event);
  mark->products = state.products;
  return enqueue([mark, number = ++mark->recorded] { mark->reached = number; });
}
EXPORTED int cuEventSynchronize(void* event) {
  if (refused_in_capture("cuEventSynchronize")) return answer();
  const auto* mark = static_cast<Event*>(event);
  if (mark->reached == mark->recorded) return 0;
  ++state.waits;
  while (mark->reached < mark->recorded) {  // just as far as it must
    held.front()();
    held.pop_front();
  }
  return 0;
}
EXPORTED int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  ++state.timed;
  state.timed_products = static_cast<Event*>(end)->products - static_cast<Event*>(begin)->products;
  *milliseconds = state.milliseconds[static_cast<std::size_t>(state.last_algorithm)];
  return 0;
}
EXPORTED int cuMemAlloc_v2(std::uintptr_t* address, std::size_t bytes) {
  if (refused_in_capture("cuMemAlloc") || !state.violation.empty()) return kIllegalAddress;
  char* base = static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(base, 0, bytes);
  // What was freed within the new one's place is no more.
  allocations.erase(allocations.lower_bound(base), allocations.lower_bound(base + bytes));
  allocations[base] = {bytes, false};
  *address = reinterpret_cast<std::uintptr_t>(base);
  return 0;
}
EXPORTED int cuMemFree_v2(std::uintptr_t address) {
  if (refused_in_capture("cuMemFree")) return answer();
  const auto found = allocations.find(reinterpret_cast<const char*>(address));
  if (found == allocations.end() || found->second.freed) {
    if (address == 0) return answer();
    violate("cuMemFree: argument address is no allocation, or was freed");
    return kInvalidValue;
  }
  found->second.freed = true;
  std::free(reinterpret_cast<void*>(address));
  return answer();
}
EXPORTED int cuMemAllocHost_v2(void** address, std::size_t bytes) {
  ++state.host_allocations;
  *address = std::malloc(bytes);
  return 0;
}
EXPORTED int cuMemFreeHost(void* address) {
  std::free(address);
  return 0;
}
EXPORTED int cuMemcpyHtoDAsync_v2(std::uintptr_t to, const void* from, std::size_t bytes, void*) {
  if (!stand_in_touches("cuMemcpyHtoDAsync", "to", reinterpret_cast<void*>(to), bytes))
    return kIllegalAddress;
  return enqueue([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
EXPORTED int cuMemcpyDtoHAsync_v2(void* to, std::uintptr_t from, std::size_t bytes, void*) {
  if (!stand_in_touches("cuMemcpyDtoHAsync", "from", reinterpret_cast<void*>(from), bytes))
    return kIllegalAddress;
  return enqueue([=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}
EXPORTED int cuMemcpyDtoDAsync_v2(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void*) {
  if (!stand_in_touches("cuMemcpyDtoDAsync", "to", reinterpret_cast<void*>(to), bytes) ||
      !stand_in_touches("cuMemcpyDtoDAsync", "from", reinterpret_cast<void*>(from), bytes))
    return kIllegalAddress;
  return enqueue(
      [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}
EXPORTED int cuMemsetD8Async(std::uintptr_t address, unsigned char value, std::size_t bytes, void*) {
  if (!stand_in_touches("cuMemsetD8Async", "address", reinterpret_cast<void*>(address), bytes))
    return kIllegalAddress;
  return enqueue([=] { std::memset(reinterpret_cast<void*>(address), value, bytes); });
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
