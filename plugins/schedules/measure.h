// How far a run has come, in the measure that a schedule's key `by` names.
#pragma once

#include <mulligan/schedule.hpp>

#include <string>

namespace mulligan::schedules {

// The fraction of the run that is done, in [0, 1]. by = "budget": of what bounds the run, wall clock or
// steps; "step": of total_steps. Throws when the run has no total_steps to be a fraction of.
inline double fraction_done(const std::string& by, const sdk::Progress& progress) {
  if (by == "budget") return progress.budget_fraction;
  if (progress.total_steps <= 0) {
    throw sdk::Error(
        "by = \"step\" needs a run with a number of steps, but this one is bounded by its wall clock only; "
        "set the number of steps, or by = \"budget\"");
  }
  return static_cast<double>(progress.step) / static_cast<double>(progress.total_steps);
}

}  // namespace mulligan::schedules
