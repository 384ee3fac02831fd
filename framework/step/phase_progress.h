// The progress of a phase that has a schedule of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/checkpoint/manifest.h"
#include "framework/config/run_config.h"
#include "framework/plugin/schedule.h"

namespace mulligan {

// What a schedule sees of a run after `steps` updates: schedule.horizon_steps stand for its steps and its budget where
// they are others than train.steps.
mlg_progress run_progress(const RunConfig& config, std::int64_t steps, double budget_fraction, double epoch);

// What a schedule sees in phase number `phase`: with lr_policy = "independent" steps, epochs since `start`,
// the share of the phase that is over, 0 to 1, by the nearest of its limits (the last phase ends with the
// budget), and its number of steps where it ends at a step. Otherwise `of_run`, the run's progress. Pure.
mlg_progress phase_progress(const RunConfig& config, std::size_t phase, const PhaseStart& start,
                            const mlg_progress& of_run, double elapsed_seconds);

// The training budget as the phases count it (phase.step_seconds): how much is spent follows from the number of steps.

class StepSeconds {
 public:
  // Whether a run's phases say what their steps count as.
  static bool counts(const RunConfig& config);
  // Of such a run.
  explicit StepSeconds(const RunConfig& config);

  // After so many steps: seconds of the budget, and the share of budget_seconds - reserve_seconds, 0 to 1.
  double seconds(std::int64_t steps);
  double fraction(std::int64_t steps);
  // Whether training ends before the coming step: the budget less the reserve is spent, or train.steps are made.
  bool ended(std::int64_t steps);
  // Of the whole run, and of each of its phases.
  std::int64_t total_steps() const { return total_steps_; }
  const std::vector<std::int64_t>& phase_steps() const { return phase_steps_; }

 private:
  // A point of the run: which phase its last step was of, and where that began.
  struct Point {
    std::int64_t steps = 0, phase_begin = 0;
    std::size_t phase = 0;
    double begin_seconds = 0;
  };
  double seconds_at(const Point& point) const;
  double spent_share(double seconds) const;
  void make_step(Point& point) const;

  TrainConfig train_;
  std::vector<Phase> phases_;
  Point point_;  // of the last question: questions rise
  std::int64_t total_steps_ = 0;
  std::vector<std::int64_t> phase_steps_;
};

}  // namespace mulligan
