// What a command does with a run's configuration: train it, or score weights. Planning it: dry_run.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/model/parameter_values.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/train/resumable_evaluation.h"
#include "framework/train/weight_origin.h"

namespace mulligan {

class TensorStore;

struct TrainOptions : ConsoleOptions {
  // Start anew in a run directory that holds a finished run (a result.json). Otherwise that is refused.
  bool overwrite = false;
  // Continue from a checkpoint: "auto" the run's newest sound one (or from the beginning when it has none
  // yet), or the path of one or of a run directory. "": start anew.
  std::string resume;
};

// What a finished training run found; result.json holds all of it and more.
struct RunResult {
  std::filesystem::path
      directory;  // of config.toml, log.txt, metrics.jsonl, weights.safetensors, result.json
  std::int64_t parameters = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;       // trained on, over all ranks
  double initial_loss_nats = 0;  // mean token loss of the first step, before any update
  double final_loss_nats = 0;    // of the last step
  std::vector<std::pair<std::string, double>> seconds;  // by phase of the ledger, in order
  double tokens_per_second = 0;                         // over the training phase
  std::int64_t peak_memory_bytes = 0;                   // of the process (VmHWM)
  std::int64_t peak_device_memory_bytes = 0;            // that the backend gave out at once
  std::optional<EvalResult> validation;                 // absent when [data] names no validation shards
  std::vector<double> step_loss_nats;                   // of the steps that this process made, in order
  std::int64_t first_step = 0;                          // the first of them, counted from 0
  std::filesystem::path resumed_from;                   // a checkpoint, or empty
};

// Resolves the plugins' keys in `loaded`, then trains and validates as it says. Writes the run directory.
// Throws Error.
RunResult train(LoadedConfig& loaded, PluginHost& host, const TrainOptions& options = {});

// Gives a model its weights: fills the f32 masters of `layouts`, which exist in the store.
using WeightLoader = std::function<void(TensorStore& store, const std::vector<ParameterLayout>& layouts)>;

// Scores weights on the validation shards of `loaded`; `origin` says where they come from. With a
// folder in `files` an interrupted evaluation can be continued. Throws Error; data_error
// when they belong to another tokenizer (require_data_of).
EvalResult evaluate_loaded(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                           const WeightLoader& load, const ConsoleOptions& options = {},
                           const ScoreFiles& files = {});

// Scores `weights` (as written by train) on the validation shards of `loaded`. Throws Error.
EvalResult evaluate_weights(LoadedConfig& loaded, PluginHost& host, const std::filesystem::path& weights,
                            const ConsoleOptions& options = {});

// What a command does, and so which plugins of a configuration it needs: training all of them, scoring the
// backend, quantising the backend and the quantiser, adapting (test-time training) the backend and those of
// [ttt]. No other is looked for.
enum class PluginUse { train, score, quantize, adapt };

// Resolves the keys of the plugins of `loaded` that `use` needs (LoadedConfig::plugins), loading them through
// `host`. A [run] threads > 0 becomes the backend's `threads` where the backend has that key and [backend] does
// not set it.
void resolve_run_plugins(LoadedConfig& loaded, PluginHost& host, PluginUse use = PluginUse::train);

}  // namespace mulligan
