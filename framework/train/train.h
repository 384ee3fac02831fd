// Training a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/train/train_result.h"
#include "framework/train/training_observer.h"

namespace mulligan {

class RunRanks;

struct TrainOptions : ConsoleOptions {
  // Start anew in a run directory that holds a finished run (a result.json). Otherwise that is refused.
  bool overwrite = false;
  // Continue from a checkpoint: "auto" the run's newest sound one (or from the beginning when it has none
  // yet), or the path of one or of a run directory. "": start anew.
  std::string resume;
  // Watch the run; each run makes its own, in this order.
  std::vector<MakeObserver> observers = {};
  // Of the training budget, in seconds; empty: the process's own.
  std::function<double()> clock = {};
};

// Resolves the plugins' keys in `loaded`, then trains and validates as it says, as one of `ranks`. The first
// of them writes the run directory. Throws Error.
RunResult train(LoadedConfig& loaded, PluginHost& host, const TrainOptions& options, RunRanks& ranks);
// The same in this process alone.
RunResult train(LoadedConfig& loaded, PluginHost& host, const TrainOptions& options = {});

}  // namespace mulligan
