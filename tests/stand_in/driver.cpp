// A stand-in for libcuda.so.1 with memory of the host: streams are threads that do their work in order, events
// are marks in them. Just what the nccl communicator and a backend beside it ask for. MULLIGAN_STAND_IN_DRIVER="R N":
// the first stream of the process with RANK=R, the backend's, hangs after N pieces of work, as in a kernel that never ends.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/stand_in/streams.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using stand_ins::Event;
using stand_ins::Mark;
using stand_ins::Stream;

constexpr int kNotReady = 600;

// After how many pieces of work the stream that is made now hangs.
unsigned long work_before_hanging() {
  static std::atomic<bool> is_first = true;
  const char *text = std::getenv("MULLIGAN_STAND_IN_DRIVER"), *own = std::getenv("RANK");
  if (!text || !*text || !own || !is_first.exchange(false)) return ~0ul;
  char* rest = nullptr;
  const bool is_meant = std::strtoul(text, &rest, 10) == std::strtoul(own, nullptr, 10);
  return is_meant ? std::strtoul(rest, nullptr, 10) : ~0ul;
}

// What a backend has allocated or registered here: bytes by address; of what was freed minus that.
std::mutex memory_mutex;
std::map<const char*, std::ptrdiff_t> memory;

}  // namespace

// Memory of the host that libraries may be given; the emulated device's is.
EXPORTED int cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned) {
  const char* made = static_cast<char*>(address);
  const std::lock_guard lock(memory_mutex);
  memory.erase(memory.lower_bound(made), memory.lower_bound(made + bytes));
  memory[made] = static_cast<std::ptrdiff_t>(bytes);
  return 0;
}
EXPORTED int cuMemHostUnregister(void* address) {
  const std::lock_guard lock(memory_mutex);
  const auto found = memory.find(static_cast<const char*>(address));
  if (found == memory.end() || found->second < 0) return 1;
  found->second = -found->second;
  return 0;
}
EXPORTED int cuMemAlloc_v2(std::uintptr_t* address, std::size_t bytes) {
  const std::size_t whole = (bytes + 255) / 256 * 256;
  char* made = static_cast<char*>(std::aligned_alloc(256, whole));
  const std::lock_guard lock(memory_mutex);
  memory.erase(memory.lower_bound(made), memory.lower_bound(made + whole));
  memory[made] = static_cast<std::ptrdiff_t>(bytes);
  *address = reinterpret_cast<std::uintptr_t>(made);
  return 0;
}
EXPORTED int cuMemFree_v2(std::uintptr_t address) {
  const std::lock_guard lock(memory_mutex);
  const auto found = memory.find(reinterpret_cast<const char*>(address));
  if (found == memory.end() || found->second < 0) return 1;
  found->second = -found->second;
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
// What is wrong with `bytes` from `address` on, for a sentence; null: nothing.
EXPORTED const char* stand_in_memory_fault(const void* address, std::size_t bytes) {
  thread_local std::string fault;
  const auto* at = static_cast<const char*>(address);
  const std::lock_guard lock(memory_mutex);
  const auto next = memory.upper_bound(at);
  const auto size = [](std::ptrdiff_t signed_bytes) {
    return static_cast<std::size_t>(signed_bytes < 0 ? -signed_bytes : signed_bytes);
  };
  if (next == memory.begin() || at >= std::prev(next)->first + size(std::prev(next)->second))
    return " where nothing was allocated";
  const auto& [base, held] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(at - base);
  if (held < 0) {
    fault = " of an allocation of " + std::to_string(size(held)) + " that was freed";
  } else if (bytes > size(held) - offset) {
    fault = ", " + std::to_string(offset) + " bytes into an allocation of " + std::to_string(held);
  } else {
    return nullptr;
  }
  return fault.c_str();
}
EXPORTED int cuCtxPushCurrent_v2(void*) {
  return 0;
}
EXPORTED int cuCtxPopCurrent_v2(void** context) {
  *context = nullptr;
  return 0;
}
EXPORTED int cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream(work_before_hanging());
  return 0;
}
EXPORTED int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}
EXPORTED int cuEventCreate(void** event, unsigned) {
  *event = new Event(std::make_shared<Mark>());
  return 0;
}
EXPORTED int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
EXPORTED int cuEventRecord(void* event, void* stream) {
  static_cast<Stream*>(stream)->record(*static_cast<Event*>(event));
  return 0;
}
EXPORTED int cuEventQuery(void* event) {
  return (*static_cast<Event*>(event))->is_reached() ? 0 : kNotReady;
}
EXPORTED int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  static_cast<Stream*>(stream)->wait_for(*static_cast<Event*>(event));
  return 0;
}
EXPORTED int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  static_cast<Stream*>(stream)->add([function, data] { function(data); });
  return 0;
}
EXPORTED int cuStreamSynchronize(void* stream) {
  static_cast<Stream*>(stream)->synchronize();
  return 0;
}
// Late, so that what does not wait for it is found out.
EXPORTED int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, void* stream) {
  static_cast<Stream*>(stream)->add([=] {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::memcpy(to, from, bytes);
  });
  return 0;
}
EXPORTED int cuGetErrorString(int, const char** text) {
  *text = "an error of the stand-in";
  return 0;
}
