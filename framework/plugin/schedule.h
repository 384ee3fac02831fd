// Schedule: a learning-rate schedule made by a plugin.
#pragma once

#include <mulligan/schedule.h>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Schedule : public PluginInstance<mlg_schedule_table> {
 public:
  using PluginInstance::PluginInstance;

  // The scheduled rate for a group whose configured rate is base_lr, and the index of the warm-restart cycle.
  // Pure.
  mlg_rate rate(const mlg_progress& progress, double base_lr) const {
    mlg_rate result{};
    check(table().rate(instance(), &progress, base_lr, &result));
    return result;
  }
};

}  // namespace mulligan
