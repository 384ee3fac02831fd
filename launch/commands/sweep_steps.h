// A sweep's steps: training and test-time training of this program.
#pragma once

#include <string>
#include <vector>

#include "framework/sweep/sweep.h"

namespace mulligan {

// `host` must outlive them; `plugin_paths` are those that it was given (--plugin-path), for ranks.
SweepSteps sweep_steps(PluginHost& host, const std::vector<std::string>& plugin_paths = {});

}  // namespace mulligan
