// Training a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/train/training_observer.h"

namespace mulligan {

class RunRanks;

// What a finished training run found; result.json holds all of it and more.
struct RunResult {
  // of config.toml, log.txt, metrics.jsonl, weights.safetensors, result.json
  std::filesystem::path directory;
  std::int64_t parameters = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;       // trained on, over all ranks
  double initial_loss_nats = 0;  // mean token loss of the first step, before any update
  double final_loss_nats = 0;    // of the last step
  std::vector<std::pair<std::string, double>> seconds;  // by phase of the ledger, in order
  double tokens_per_second = 0;                         // over the training phase
  std::int64_t peak_memory_bytes = 0;                   // of the process (VmHWM)
  std::int64_t peak_device_memory_bytes = 0;            // that the backend had allocated at once
  std::optional<EvalResult> validation;                 // absent when [data] names no validation shards
  std::vector<double> step_loss_nats;                   // of the steps that this process made, in order
  std::int64_t first_step = 0;                          // the first of them, counted from 0
  std::filesystem::path resumed_from;                   // a checkpoint, or empty
  RunStart start;
};

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
