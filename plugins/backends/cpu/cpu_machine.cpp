#include "plugins/backends/cpu/cpu_machine.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kParallelBytes = std::int64_t{1} << 20;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Processors this process may run on.
int allowed_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Physical cores among the processors this process may run on; 0 when the topology is not readable.
int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    if (siblings.empty()) return 0;
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

// Processors the control group may use, rounded up; a large number when there is no limit.
int quota() {
  std::istringstream words(first_line("/sys/fs/cgroup/cpu.max"));
  double microseconds = 0, period = 0;
  if (!(words >> microseconds >> period) || period <= 0) return 1 << 20;  // "max 100000": no limit
  return std::max(1, static_cast<int>(std::ceil(microseconds / period)));
}

// What can be allocated without swapping or being killed, as the system estimates it; a large
// number when unknown.
std::uint64_t available_bytes() {
  std::uint64_t available = ~std::uint64_t{0};
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    if (std::uint64_t kibibytes = 0; key == "MemAvailable:" && file >> kibibytes) available = kibibytes << 10;
  }
  if (const std::uint64_t all = memory_bytes(); all > 0) available = std::min(available, all);
  return available;
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
#if defined(__x86_64__)
  return "x86-64 processor";
#elif defined(__aarch64__)
  return "AArch64 processor";
#else
  return "processor";
#endif
}

int default_thread_count() {
  if (const char* wanted = std::getenv("OMP_NUM_THREADS")) {
    if (const int threads = std::atoi(wanted); threads > 0) return threads;
  }
  int count = allowed_processors();
  if (const int cores = physical_cores(); cores > 0) count = std::min(count, cores);
  return std::max(1, std::min(count, quota()));
}

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  std::uint64_t bytes =
      pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
  std::istringstream limit(first_line("/sys/fs/cgroup/memory.max"));
  if (std::uint64_t most = 0; limit >> most) bytes = bytes ? std::min(bytes, most) : most;
  return bytes;
}

void* allocate_zeroed(std::size_t bytes) {
  const bool large = bytes >= kHugePage;
  const std::size_t alignment = large ? kHugePage : kAlignment;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  // Asked before allocating: the system promises more than it has, and kills the process when the
  // pages are touched.
  const std::uint64_t available = available_bytes();
  void* address = bytes <= available ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (address == nullptr) {
    throw std::runtime_error("the cpu backend cannot allocate " + std::to_string(bytes) +
                             " bytes of memory, " + std::to_string(available) +
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
