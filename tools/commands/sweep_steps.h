// A sweep's steps: training and test-time training of this program.
#pragma once

#include <string>
#include <vector>

#include "framework/report/console.h"
#include "framework/train/training_observer.h"
#include "tools/sweep/sweep.h"

namespace mulligan {

// What sweeps are given by other parts of the program.
struct SweepParts {
  std::vector<MakeObserver> observers;    // of each training in this process
  std::vector<std::string> plugin_paths;  // those of the host (--plugin-path), for ranks
};

// `host` must outlive them.
SweepSteps sweep_steps(PluginHost& host, const SweepParts& parts = {});

}  // namespace mulligan
