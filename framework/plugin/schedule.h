// Schedule: a learning-rate schedule made by a plugin.
#pragma once

#include <mulligan/schedule.h>

#include <cmath>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

// The rate without a schedule: every factor is 1.
inline constexpr mlg_rate neutral_rate{0, 0, 1, 1, 1};

class Schedule : public PluginInstance<mlg_schedule_table> {
 public:
  using PluginInstance::PluginInstance;

  // The scheduled rate for a group whose configured rate is base_lr, the index of the warm-restart cycle, and the factors on
  // momentum, weight decay and batch. Pure. Throws config_error that names plugin, section and step if a number is negative or
  // not finite, or the batch factor is 0.
  mlg_rate rate(const mlg_progress& progress, double base_lr) const {
    mlg_rate result = neutral_rate;
    call(table().rate, &progress, base_lr, &result);
    require_sound(progress, result);
    return result;
  }

 private:
  void require_sound(const mlg_progress& progress, const mlg_rate& rate) const {
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
};

}  // namespace mulligan
