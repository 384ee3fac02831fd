// EnergyMeter measures the energy of the stretches of a run, like a stopwatch that can be paused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/train/training_observer.h"

namespace mulligan::energy {

// Energy counters of a machine: of its CPUs, by powercap, and of its GPUs, by their driver. A missing counter is reported with the
// reason; nothing is ever estimated.

enum class Part { cpu, gpu };

class Counter {
 public:
  virtual ~Counter() = default;
  virtual std::string name() const = 0;  // "powercap package-0", "GPU 0000:1B:00.0"
  virtual Part part() const = 0;
  // Joules since any origin, never less than before. A counter that wraps must be read before it wraps twice. Throws run_error
  // if it cannot be read.
  virtual double read_joules() = 0;
};

// The available counters, and a sentence without full stop about each missing kind.
struct Counters {
  std::vector<std::unique_ptr<Counter>> counters;
  std::vector<std::string> absent;
};

// The zones below `root` that are called package-N, dram, or package-N-die-M: their energies add up to that of CPUs and
// memory. Others (core, uncore, psys) are parts of these or contain them. They count the whole machine, including other
// processes. If one zone may not be read, all are absent, because a part is not a total.
Counters cpu_counters(const std::filesystem::path& root = "/sys/class/powercap");

// The GPU of this thread's CUDA context, by the driver's counter of its total energy (NVML, Volta and later). Absent if this
// process has no CUDA driver open, as on the emulated device.
Counters gpu_counters();

// The microjoules between two readings of a counter that counts from 0 to `range` and then wraps.
std::uint64_t wrapped_difference(std::uint64_t before, std::uint64_t now, std::uint64_t range);

// Sums of counters; for several ranks, those that all ranks have.
struct Reading {
  std::vector<std::string> counters;  // by name
  std::vector<std::string> absent;    // why others are not there, sentences without full stop
  std::optional<double> cpu_joules, gpu_joules;
  std::optional<double> joules() const;  // of both; absent where neither is there
};

class Meter {
 public:
  Meter() = default;
  explicit Meter(std::vector<Counters> counters);

  // Between these two calls energy counts. Neither throws: a counter that fails is absent from then on, with its reason, and
  // its count is dropped.
  void resume();
  void pause();
  // Call it while the meter runs: it reads the counters before any of them can wrap.
  void poll();
  Reading reading() const;

 private:
  struct Counted {
    std::unique_ptr<Counter> counter;
    double last = 0, joules = 0;
  };
  void read(bool count);
  std::vector<Counted> counted_;
  std::vector<std::string> absent_;
  bool running_ = false;
};

// Combines the readings of all ranks. Each rank has its own GPUs. CPUs belong to the machine, so one rank of each machine
// counts them (`counts_cpus`), and these readings are added. If one rank lacks a counter, it is absent.
struct RankReading {
  Reading reading;
  bool counts_cpus = true;
};
Reading total(const std::vector<RankReading>& ranks);

// As text between ranks, and back.
std::string to_text(const RankReading& reading);
RankReading rank_reading_of(const std::string& text);

// EnergyObserver: the energy of training (metrics.energy), as "energy" in result.json.

// It counts while the training clock runs, on all ranks. Validations and checkpoints at the end are not included. For a resumed
// run it counts from the resume on.
class EnergyObserver : public TrainingObserver {
 public:
  void clock_starts(const ObservedRun& run) override;
  void clock_stops() override;
  void before_report() override;
  void at_end(const ObservedRun& run) override;
  void add_to_result(nlohmann::ordered_json& result) const override;

 private:
  bool begun_ = false;
  Meter meter_;                    // counts nothing unless metrics.energy is set
  std::int64_t first_tokens_ = 0;  // trained on before it counted
  std::int64_t tokens_ = 0;        // trained on while it did
  std::optional<Reading> total_;   // of all ranks
};

}  // namespace mulligan::energy
