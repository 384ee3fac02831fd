// EnergyMeter: the energy of a stretch of a run that is interrupted, as a stopwatch is to time.
#pragma once

#include <string>
#include <vector>

#include "lab/energy/energy_counter.h"

namespace mulligan::energy {

// What was measured; of several ranks, what all of them measured. Sums of counters.
struct Reading {
  std::vector<std::string> counters;  // by name
  std::vector<std::string> absent;    // why others are not there, sentences without full stop
  double processor_joules = 0, gpu_joules = 0;
  bool processors = false, gpus = false;  // whether there is such a figure
  bool measured() const { return processors || gpus; }
  double joules() const { return processor_joules + gpu_joules; }
};

class Meter {
 public:
  Meter() = default;
  explicit Meter(std::vector<Counters> counters);

  // Between these energy counts. Neither throws: a counter that fails is absent from then on, with its
  // reason, and what it had counted is dropped.
  void resume();
  void pause();
  // While it runs: reads the counters, before any of them can wrap.
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

// One reading of all ranks' readings: GPUs are each rank's own; processors belong to the machine, so one rank
// of each machine counts them (`counts_processors`), whose readings are added. A kind that one rank lacks is
// absent.
struct RankReading {
  Reading reading;
  bool counts_processors = true;
};
Reading total(const std::vector<RankReading>& ranks);

// As text between ranks, and back.
std::string to_text(const RankReading& reading);
RankReading rank_reading_of(const std::string& text);

}  // namespace mulligan::energy
