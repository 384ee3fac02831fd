#include "plugins/backends/cuda_emulated/device_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace mulligan::cuda {

DeviceMemory::~DeviceMemory() {
  for (auto& [address, allocation] : allocations_) std::free(const_cast<char*>(address));
}

void* DeviceMemory::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  const std::size_t size = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  auto known = std::make_unique<unsigned char[]>(size);
  void* address = std::aligned_alloc(kAlignment, size);
  if (!address) throw std::bad_alloc();
  std::memset(address, 0xCD,
              size);  // what a kernel that reads too early computes with, should it be let through
  const std::lock_guard lock(mutex_);
  allocations_.emplace(static_cast<char*>(address), Allocation{bytes, std::move(known)});
  return address;
}

void DeviceMemory::free(void* address) noexcept {
  const std::lock_guard lock(mutex_);
  if (allocations_.erase(static_cast<char*>(address)) > 0) std::free(address);
}

unsigned char* DeviceMemory::marks(const void* address, std::size_t bytes) const {
  const char* begin = static_cast<const char*>(address);
  const std::lock_guard lock(mutex_);
  const auto after = allocations_.upper_bound(begin);
  if (after != allocations_.begin()) {
    const auto& [start, allocation] = *std::prev(after);
    const auto offset = static_cast<std::size_t>(begin - start);
    if (offset <= allocation.bytes && bytes <= allocation.bytes - offset)
      return allocation.known.get() + offset;
  }
  throw std::runtime_error("a range of " + std::to_string(bytes) +
                           " bytes does not lie inside one allocation of the emulated device");
}

void DeviceMemory::require_known(const void* address, std::size_t bytes, const char* what) const {
  const unsigned char* known = marks(address, bytes);
  if (const void* hole = bytes ? std::memchr(known, 0, bytes) : nullptr) {
    throw std::runtime_error(std::string(what) + " byte " +
                             std::to_string(static_cast<const unsigned char*>(hole) - known) + " of " +
                             std::to_string(bytes) + ", which nothing has written");
  }
}

}  // namespace mulligan::cuda
