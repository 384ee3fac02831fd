// Memory of the driver's stub: memory of the host, with a list of all allocations.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "tests/stub/driver_state.h"
#include "tests/stub/report.h"
#include "tests/stub/stub.h"

using namespace stub_driver;

namespace {

std::mutex mutex;
std::map<const char*, Allocation> allocations;  // by base; freed ones stay until their place is given anew

// The card's memory that is taken, by all of its processes.
class Card {
 public:
  Card() {
    const char* shared = std::getenv("MULLIGAN_STUB_CARD");
    if (!shared) return;
    std::istringstream words(shared);
    std::string path;
    if (!(words >> path >> bytes_)) std::abort();
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || ftruncate(file, sizeof *taken_) != 0) std::abort();
    void* mapped = mmap(nullptr, sizeof *taken_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) std::abort();
    close(file);
    taken_ = static_cast<std::atomic<std::size_t>*>(mapped);
  }
  ~Card() { *taken_ -= own_; }

  std::size_t total() const { return bytes_ > 0 ? bytes_ : stub().card_bytes; }
  std::size_t free() const { return total() - std::min<std::size_t>(*taken_, total()); }
  bool take(std::size_t bytes) {
    if (taken_->fetch_add(bytes) + bytes > total()) {
      *taken_ -= bytes;
      return false;
    }
    own_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) {
    *taken_ -= bytes;
    own_ -= bytes;
  }

 private:
  std::atomic<std::size_t> alone_ = 0, own_ = 0;
  std::atomic<std::size_t>* taken_ = &alone_;
  std::size_t bytes_ = 0;
};
Card& card() {
  static Card one;
  return one;
}

// Large memory that nothing is computed in keeps its addresses and takes none of the host's.
bool is_written(std::size_t bytes) {
  constexpr std::size_t kLarge = std::size_t{64} << 20;
  return stub().computes || bytes < kLarge;
}

std::size_t place_of(std::size_t bytes) {
  return (bytes + 255) / 256 * 256 + 256;
}

// What is wrong with `bytes` from `address` on, for a sentence; empty: nothing.
std::string fault_of(const void* address, std::size_t bytes) {
  const auto* at = static_cast<const char*>(address);
  const std::lock_guard lock(mutex);
  const auto next = allocations.upper_bound(at);
  if (next == allocations.begin() ||
      at >= std::prev(next)->first + std::max<std::size_t>(std::prev(next)->second.bytes, 1))
    return " where nothing was allocated";
  const auto& [base, allocation] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(at - base);
  if (allocation.freed) return " of an allocation of " + std::to_string(allocation.bytes) + " that was freed";
  if (bytes > allocation.bytes - offset)
    return ", " + std::to_string(offset) + " bytes into an allocation of " + std::to_string(allocation.bytes);
  return {};
}

// Forgets what was freed within the new allocation's place; `bytes` of the place may be touched.
void note_allocation(const char* base, std::size_t bytes, std::size_t place) {
  const std::lock_guard lock(mutex);
  allocations.erase(allocations.lower_bound(base), allocations.lower_bound(base + place));
  allocations[base] = {bytes, false};
}
// Its bytes; nothing: there is none, or it was freed.
std::optional<std::size_t> note_end(const void* address) {
  const std::lock_guard lock(mutex);
  const auto found = allocations.find(static_cast<const char*>(address));
  if (found == allocations.end() || found->second.freed) return {};
  found->second.freed = true;
  return found->second.bytes;
}

// A copy or fill of `bytes` from `first` on, and, where it is one, from `second` on.
template <typename Work>
int transfer(const char* call, const char* first_name, std::uintptr_t first, const char* second_name,
             std::uintptr_t second, std::size_t bytes, void* stream, Work&& work) {
  const auto judged = [=] {
    return stub_touches(call, first_name, reinterpret_cast<void*>(first), bytes) &&
           (!second_name || stub_touches(call, second_name, reinterpret_cast<void*>(second), bytes));
  };
  ++stub().copies;
  if (!judged()) return kIllegalAddress;
  // Again when it is done: a graph may outlive the memory that it was captured with.
  return enqueue(stream, [judged, work = std::forward<Work>(work)] {
    if (judged()) work();
  });
}

}  // namespace

EXPORTED bool stub_touches(const char* call, const char* argument, const void* address, std::size_t bytes) {
  const std::string fault = fault_of(address, bytes);
  if (fault.empty()) return true;
  violate(std::string(call) + ": argument " + argument + " takes " + std::to_string(bytes) + " bytes" +
          fault);
  return false;
}
// What is wrong with it, for the sentences of NCCL's stub; null: nothing.
EXPORTED const char* stub_memory_fault(const void* address, std::size_t bytes) {
  thread_local std::string fault;
  fault = fault_of(address, bytes);
  return fault.empty() ? nullptr : fault.c_str();
}
EXPORTED std::size_t stub_bytes_from(const void* address) {
  if (!fault_of(address, 1).empty()) return 0;
  const std::lock_guard lock(mutex);
  const auto& [base, allocation] = *std::prev(allocations.upper_bound(static_cast<const char*>(address)));
  return allocation.bytes - static_cast<std::size_t>(static_cast<const char*>(address) - base);
}

EXPORTED int cuMemAlloc_v2(std::uintptr_t* address, std::size_t bytes) {
  if (refused_in_capture("cuMemAlloc") || answer() != 0) return kIllegalAddress;
  // A gap follows it, so that an address after its end lies in no other allocation, live or freed.
  const std::size_t place = place_of(bytes);
  if (!card().take(bytes)) return kOutOfMemory;
  void* memory = is_written(bytes) ? std::aligned_alloc(256, place)
                                   : mmap(nullptr, place, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!memory || memory == MAP_FAILED) std::abort();
  char* base = static_cast<char*>(memory);
  if (is_written(bytes)) std::memset(base, stub().fresh_byte, bytes);
  note_allocation(base, bytes, place);
  *address = reinterpret_cast<std::uintptr_t>(base);
  return 0;
}
EXPORTED int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = card().free();
  *total = card().total();
  return answer();
}
EXPORTED int cuMemFree_v2(std::uintptr_t address) {
  if (refused_in_capture("cuMemFree")) return answer();
  if (address == 0) return answer();
  if (const auto bytes = note_end(reinterpret_cast<void*>(address))) {
    card().give_back(*bytes);
    if (is_written(*bytes))
      std::free(reinterpret_cast<void*>(address));
    else
      munmap(reinterpret_cast<void*>(address), place_of(*bytes));
    return answer();
  }
  violate("cuMemFree: argument address is not an allocation, or was freed");
  return kInvalidValue;
}
// Memory of the host that libraries may be given; the emulated device's is.
EXPORTED int cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned) {
  note_allocation(static_cast<char*>(address), bytes, bytes);
  return answer();
}
EXPORTED int cuMemHostUnregister(void* address) {
  return note_end(address) ? answer() : kInvalidValue;
}
EXPORTED int cuMemAllocHost_v2(void** address, std::size_t bytes) {
  ++stub().host_allocations;
  *address = std::malloc(bytes);
  return 0;
}
EXPORTED int cuMemFreeHost(void* address) {
  std::free(address);
  return 0;
}
EXPORTED int cuMemcpyHtoDAsync_v2(std::uintptr_t to, const void* from, std::size_t bytes, void* stream) {
  return transfer("cuMemcpyHtoDAsync", "to", to, nullptr, 0, bytes, stream,
                  [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
EXPORTED int cuMemcpyDtoHAsync_v2(void* to, std::uintptr_t from, std::size_t bytes, void* stream) {
  return transfer("cuMemcpyDtoHAsync", "from", from, nullptr, 0, bytes, stream,
                  [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}
EXPORTED int cuMemcpyDtoDAsync_v2(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void* stream) {
  return transfer("cuMemcpyDtoDAsync", "to", to, "from", from, bytes, stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}
EXPORTED int cuMemsetD8Async(std::uintptr_t address, unsigned char value, std::size_t bytes, void* stream) {
  return transfer("cuMemsetD8Async", "address", address, nullptr, 0, bytes, stream, [=] {
    if (is_written(bytes)) std::memset(reinterpret_cast<void*>(address), value, bytes);
  });
}
// Late, so that what does not wait for it is found out.
EXPORTED int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, void* stream) {
  return enqueue(stream, [=] {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::memcpy(to, from, bytes);
  });
}
