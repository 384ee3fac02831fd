// Counters of energy that a machine keeps: of its processors, by powercap, and of its GPUs, by their driver. Where
// there is none it is said why; nothing is ever estimated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace mulligan::energy {

enum class Part { processors, gpu };

class Counter {
 public:
  virtual ~Counter() = default;
  virtual std::string name() const = 0;  // "powercap package-0", "GPU 0000:1B:00.0"
  virtual Part part() const = 0;
  // Joules since any origin, never less than before. A counter that wraps must be read before it wraps twice.
  // Throws run_error where it cannot be read.
  virtual double read_joules() = 0;
};

// Counters that there are, and a sentence without full stop about each kind that is not.
struct Counters {
  std::vector<std::unique_ptr<Counter>> counters;
  std::vector<std::string> absent;
};

// The zones below `root` that are called package-N, dram, or package-N-die-M, whose energies add up to that of
// processors and memory. Others (core, uncore, psys) are parts of these or hold them. They count the whole
// machine, whoever works on it. One that may not be read is absent, and then all are: a part is no total.
Counters processor_counters(const std::filesystem::path& root = "/sys/class/powercap");

// The GPU of this thread's CUDA context, by the driver's counter of its total energy (NVML, Volta and later).
// Absent where this process has no CUDA driver open, as on the emulated device.
Counters gpu_counters();

// The microjoules between two readings of a counter that goes from 0 to `range` and begins anew.
std::uint64_t wrapped_difference(std::uint64_t before, std::uint64_t now, std::uint64_t range);

}  // namespace mulligan::energy
