#include "framework/step/phase_progress.h"

#include <algorithm>

namespace mulligan {
namespace {

// How much of the way from `begin` to `end` is done at `now`; a way of no length is done.
double share(double begin, double end, double now) {
  return end > begin ? (now - begin) / (end - begin) : 1.0;
}

}  // namespace

mlg_progress run_progress(const RunConfig& config, std::int64_t steps, double budget_fraction, double epoch) {
  const std::int64_t horizon = horizon_steps(config);
  if (horizon != config.train.steps)
    budget_fraction = share(0, static_cast<double>(horizon), static_cast<double>(steps));
  return {steps, horizon, budget_fraction, epoch};
}

mlg_progress phase_progress(const RunConfig& config, std::size_t phase, const PhaseStart& start,
                            const mlg_progress& of_run, double elapsed_seconds) {
  if (config.phases[phase].lr_policy != LrPolicy::independent) return of_run;
  PhaseEnd end = config.phases[phase].until;
  if (phase + 1 == config.phases.size()) end = {config.train.steps, 1.0, 0};
  double done = 0;
  if (end.steps > 0) {
    done = std::max(done, share(static_cast<double>(start.step), static_cast<double>(end.steps),
                                static_cast<double>(of_run.step)));
  }
  for (const double fraction : {end.fraction, end.through_fraction}) {
    if (fraction > 0) done = std::max(done, share(start.budget_fraction, fraction, of_run.budget_fraction));
  }
  if (end.seconds > 0) {
    done = std::max(done, share(start.elapsed_seconds, end.seconds, elapsed_seconds));
  }
  mlg_progress own = of_run;
  own.step = of_run.step - start.step;
  own.total_steps = end.steps > 0 ? std::max<std::int64_t>(end.steps - start.step, 1) : 0;
  own.budget_fraction = std::clamp(done, 0.0, 1.0);
  own.epoch = of_run.epoch - start.epoch;
  return own;
}

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

double StepSeconds::spent_share(double seconds) const {
  return std::clamp(seconds / (train_.budget_seconds - train_.reserve_seconds), 0.0, 1.0);
}

// As the trainer chooses the phase of a coming step.
void StepSeconds::make_step(Point& point) const {
  const double spent = seconds_at(point);
  const std::size_t phase = phase_at(phases_, point.phase, point.steps, spent_share(spent), spent);
  if (phase != point.phase) point = {point.steps, point.steps, phase, spent};
  ++point.steps;
}

double StepSeconds::seconds(std::int64_t steps) {
  if (steps < point_.steps) point_ = {};
  while (point_.steps < steps) make_step(point_);
  return seconds_at(point_);
}

double StepSeconds::fraction(std::int64_t steps) {
  return spent_share(seconds(steps));
}

bool StepSeconds::ended(std::int64_t steps) {
  return (train_.steps > 0 && steps >= train_.steps) || fraction(steps) >= 1.0;
}

}  // namespace mulligan
