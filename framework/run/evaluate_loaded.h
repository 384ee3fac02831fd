// Scoring weights on the validation shards of a configuration.
#pragma once

#include <filesystem>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/loaded_model.h"
#include "framework/run/weight_origin.h"

namespace mulligan {

class RunLog;
class RunRanks;

// Where a scoring keeps the state from which --resume continues it.
struct ScoreFiles {
  std::filesystem::path directory;  // empty: no state is kept
  bool resume = false;  // continue the state that lies there; from the beginning where there is none
};

// The validation set of `config`, for weights of `origin`, with its packing. Writes what could not be checked to `log`. The data of
// `ranks` must be the same. Throws Error: for a set that strict rules refuse, and as require_data_of does.
ValidationSet open_validation(const RunConfig& config, const WeightOrigin& origin, RunLog& log,
                              RunRanks* ranks = nullptr);

// Scores weights on the validation shards of `loaded`; `origin` says where they come from. With a folder in `files` an
// interrupted evaluation can be continued. Several ranks call it alike, each with a share of the tokens, and get the same
// score; they keep no state. Throws Error; data_error when the weights belong to another tokenizer (require_data_of).
EvalResult evaluate_loaded(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                           const WeightLoader& load, const ConsoleOptions& options, const ScoreFiles& files,
                           RunRanks& ranks);

}  // namespace mulligan
