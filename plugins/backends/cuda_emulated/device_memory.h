// Memory of the emulated device: each allocation has a second array that records which of its bytes
// were ever written. Any thread, as long as nobody frees what another uses.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace mulligan::cuda {

class DeviceMemory {
 public:
  ~DeviceMemory();

  // Aligned to 256 bytes, all bytes unknown.
  void* allocate(std::size_t bytes);
  void free(void* address) noexcept;

  // The marks of [address, address + bytes): 1 for a byte that was written. Throws std::runtime_error when
  // the range does not lie inside one allocation.
  unsigned char* marks(const void* address, std::size_t bytes) const;
  // Throws unless all bytes of the range are known; `what` begins the sentence.
  void require_known(const void* address, std::size_t bytes, const char* what) const;

 private:
  struct Allocation {
    std::size_t bytes;
    std::unique_ptr<unsigned char[]> known;
  };
  mutable std::mutex mutex_;  // of the map
  std::map<const char*, Allocation> allocations_;
};

}  // namespace mulligan::cuda
