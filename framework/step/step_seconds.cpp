#include "framework/step/step_seconds.h"

#include <algorithm>

namespace mulligan {

bool StepSeconds::counts(const RunConfig& config) {
  return config.phases.front().step_seconds > 0;
}

StepSeconds::StepSeconds(const RunConfig& config)
    : train_(config.train), phases_(config.phases), phase_steps_(config.phases.size(), 0) {
  Point point;
  while (!ended(point.steps)) {
    make_step(point);
    ++phase_steps_[point.phase];
  }
  total_steps_ = point.steps;
}

double StepSeconds::seconds_at(const Point& point) const {
  return point.begin_seconds +
         static_cast<double>(point.steps - point.phase_begin) * phases_[point.phase].step_seconds;
}

double StepSeconds::share(double seconds) const {
  return std::clamp(seconds / (train_.budget_seconds - train_.reserve_seconds), 0.0, 1.0);
}

// As the trainer chooses the phase of a coming step.
void StepSeconds::make_step(Point& point) const {
  const double spent = seconds_at(point);
  const std::size_t phase = phase_at(phases_, point.phase, point.steps, share(spent), spent);
  if (phase != point.phase) point = {point.steps, point.steps, phase, spent};
  ++point.steps;
}

double StepSeconds::seconds(std::int64_t steps) {
  if (steps < point_.steps) point_ = {};
  while (point_.steps < steps) make_step(point_);
  return seconds_at(point_);
}

double StepSeconds::fraction(std::int64_t steps) {
  return share(seconds(steps));
}

bool StepSeconds::ended(std::int64_t steps) {
  return (train_.steps > 0 && steps >= train_.steps) || fraction(steps) >= 1.0;
}

}  // namespace mulligan
