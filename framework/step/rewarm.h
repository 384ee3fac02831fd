// Rewarm: the factor on all rates behind a change that an optimiser has to get used to.
#pragma once

#include <cstdint>

namespace mulligan {

// From `start` on (updates done) the rates grow linearly over `steps` steps: in the first 1/steps of what
// they are without it. steps = 0: there is none. It multiplies what the schedule says, its floor included.
struct Rewarm {
  std::int64_t start = 0, steps = 0;
  double factor(std::int64_t step) const {
    if (step < start || step - start + 1 >= steps) return 1.0;
    return static_cast<double>(step - start + 1) / static_cast<double>(steps);
  }
  bool operator==(const Rewarm&) const = default;
};

}  // namespace mulligan
