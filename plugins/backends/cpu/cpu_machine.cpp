#include "plugins/backends/cpu/cpu_machine.h"

#include <sys/mman.h>
#include <unistd.h>
#include <mulligan/control_group.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kParallelBytes = std::int64_t{1} << 20;

// What can be allocated without swapping or being killed, as the system estimates it; a large
// number when unknown.
std::uint64_t available_bytes() {
  std::uint64_t available = ~std::uint64_t{0};
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    if (std::uint64_t kibibytes = 0; key == "MemAvailable:" && file >> kibibytes) available = kibibytes << 10;
  }
  return std::min(available, sdk::control_group_limits().free_memory_bytes);
}

}  // namespace

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
#if defined(__x86_64__)
  return "x86-64 CPU";
#elif defined(__aarch64__)
  return "AArch64 CPU";
#else
  return "CPU";
#endif
}

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const std::uint64_t bytes =
      pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
  const std::uint64_t limit = sdk::control_group_limits().memory_bytes;
  if (bytes == 0) return limit == std::numeric_limits<std::uint64_t>::max() ? 0 : limit;
  return std::min(bytes, limit);
}

void* allocate_zeroed(std::size_t bytes) {
  const bool large = bytes >= kHugePage;
  const std::size_t alignment = large ? kHugePage : kAlignment;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  // Asked before a large allocation: the system promises more than it has, and kills the process when the
  // pages are touched. For a small one that would take longer than the allocation.
  void* address = !large || bytes <= available_bytes() ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (address == nullptr) {
    throw std::runtime_error("the cpu backend cannot allocate " + std::to_string(bytes) +
                             " bytes of memory, " + std::to_string(available_bytes()) +
                             " are free; use a smaller batch or model, or free memory on this machine");
  }
  if (large) madvise(address, rounded, MADV_HUGEPAGE);  // advice: without it everything works, slower
  zero_memory(address, rounded);
  return address;
}

void free_memory(void* address) {
  std::free(address);
}

void zero_memory(void* to, std::size_t bytes) {
  parallel_for(
      static_cast<std::int64_t>(bytes), kParallelBytes,
      [](void* base, std::int64_t begin, std::int64_t end) {
        std::memset(static_cast<char*>(base) + begin, 0, static_cast<std::size_t>(end - begin));
      },
      to);
}

void copy_memory(void* to, const void* from, std::size_t bytes) {
  struct Ranges {
    char* to;
    const char* from;
  } ranges{static_cast<char*>(to), static_cast<const char*>(from)};
  parallel_for(
      static_cast<std::int64_t>(bytes), kParallelBytes,
      [](void* context, std::int64_t begin, std::int64_t end) {
        const auto& r = *static_cast<const Ranges*>(context);
        std::memmove(r.to + begin, r.from + begin, static_cast<std::size_t>(end - begin));
      },
      &ranges);
}

}  // namespace mulligan::cpu
