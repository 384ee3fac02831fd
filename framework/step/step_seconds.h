// The training budget as the phases count it (phase.step_seconds): how much is spent follows from the number of steps.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/config/run_config.h"

namespace mulligan {

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
  double share(double seconds) const;
  void make_step(Point& point) const;

  TrainConfig train_;
  std::vector<Phase> phases_;
  Point point_;  // of the last question: questions rise
  std::int64_t total_steps_ = 0;
  std::vector<std::int64_t> phase_steps_;
};

}  // namespace mulligan
