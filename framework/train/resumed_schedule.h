// Whether a run that goes on from a checkpoint follows the schedule of the saved one.
#pragma once

#include <string>

#include "framework/checkpoint/manifest.h"
#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// The first learning rate that differs from the saved run's at the same step and second, in words without
// full stop; "": none does. Looks at the coming step and at places up to the end of the longer run. `saved`
// and `now` have their plugins resolved.
std::string changed_rates(const LoadedConfig& saved, const LoadedConfig& now, PluginHost& host,
                          const CheckpointManifest& manifest);

}  // namespace mulligan
