// A sweep's steps: training and test-time training of this program.
#pragma once

#include <string>
#include <vector>

#include "framework/report/console.h"
#include "framework/train/training_observer.h"
#include "tools/sweep/sweep.h"

namespace mulligan {

// `observers` watch each training in this process; `plugin_paths` are those of the host (--plugin-path), for ranks. `host` must
// outlive the steps.
SweepSteps sweep_steps(PluginHost& host, const std::vector<MakeObserver>& observers = {},
                       const std::vector<std::string>& plugin_paths = {});

}  // namespace mulligan
