// The progress of a phase that has a schedule of its own.
#pragma once

#include <cstdint>

#include "framework/config/run_config.h"
#include "framework/plugin/schedule.h"

namespace mulligan {

// Where a run stood when its present phase began.
struct PhaseStart {
  std::int64_t step = 0;  // updates done
  double budget_fraction = 0;
  double elapsed_seconds = 0;  // of the training clock
  double epoch = 0;
  bool operator==(const PhaseStart&) const = default;
};

// What a schedule sees in phase number `phase`: with lr_policy = "independent" steps, epochs since `start`,
// the share of the phase that is over, 0 to 1, by the nearest of its limits (the last phase ends with the
// budget), and its number of steps where it ends at a step. Otherwise `of_run`, the run's progress. Pure.
mlg_progress phase_progress(const RunConfig& config, std::size_t phase, const PhaseStart& start,
                            const mlg_progress& of_run, double elapsed_seconds);

}  // namespace mulligan
