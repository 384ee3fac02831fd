// WarmUp: steps of each phase before the clock starts: first touches of memory and caches are then no part of the
// budget. Everything that they changed returns to the bit, so a run with and without warm-up is the same run.
#pragma once

#include "framework/config/run_config.h"
#include "framework/run/run_ranks.h"
#include "framework/step/phase_devices.h"
#include "framework/step/snapshot.h"
#include "framework/train/training_rows.h"

namespace mulligan {

class WarmUp {
 public:
  // `config` must outlive this object.
  explicit WarmUp(const RunConfig& config) : config_(config) {}

  std::int64_t steps() const { return config_.train.warmup.steps; }
  // Leaves devices and rows in any phase, and the rows anywhere. By all ranks alike.
  void run(PhaseDevices& devices, TrainingRows& rows, RunRanks& ranks);

 private:
  void run(TrainingDevice& device, PhaseDevices& devices, TrainingRows& rows, RunRanks& ranks);

  const RunConfig& config_;
};

}  // namespace mulligan
