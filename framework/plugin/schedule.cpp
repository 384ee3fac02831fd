#include "framework/plugin/schedule.h"

#include <cmath>

namespace mulligan {

void Schedule::require_sound(const mlg_progress& progress, const mlg_rate& rate) const {
  const auto require = [&](const char* what, double value, bool positive) {
    if (std::isfinite(value) && (positive ? value > 0 : value >= 0)) return;
    throw config_error(
        "[{}]: {} gives {} = {} for step {} ({:.1f} % of the budget spent), but it must be finite and {}; "
        "fix the plugin or its keys.",
        section(), plugin().description(), what, value, progress.step + 1, 100 * progress.budget_fraction,
        positive ? "more than 0" : "not negative");
  };
  require("the learning rate", rate.lr, false);
  require("momentum_factor", rate.momentum_factor, false);
  require("weight_decay_factor", rate.weight_decay_factor, false);
  require("batch_factor", rate.batch_factor, true);
}

}  // namespace mulligan
