// Where a training step's time would go on a card, by arithmetic (mulligan profile --predict), not measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/dry_run.h"
#include "tools/cost/profile.h"

namespace mulligan {

// The step is that of one of the ranks.
struct PredictOptions : DryRunOptions {
  // Token-weighted mean length of the documents in a row; 0: whole segments.
  std::int64_t document_tokens = 0;
  ProfileOptions profile = {};  // by_shape, and which phase; where it names none: all
};

struct PredictedPhase {
  std::string name;
  std::int64_t layers = 0;  // executed
  std::vector<CostRow> rows, categories;
  CostRow total;           // of all rows, one after the other and without communication
  std::int64_t calls = 0;  // of kernels
  std::int64_t memsets = 0, copies = 0, uploads = 0;
  std::int64_t measurements = 0;  // of matmul algorithms, once, before the first step
};

// Makes a step of each phase where nothing is computed (StepRehearsal) and adds up predict_call(). Each
// memset, copy or upload costs a launch or upload_seconds, and its bytes. Changes [backend] in `loaded`.
// Throws Error.
std::vector<PredictedPhase> predict_step(LoadedConfig& loaded, PluginHost& host,
                                         const PredictOptions& options);

// As tables for people; ends with a newline. `tokens`: of a step of all ranks.
std::string format_prediction(const std::vector<PredictedPhase>& phases, const PredictOptions& options,
                              std::int64_t tokens);
// As one JSON object, with units in the names; ends with a newline.
std::string prediction_json(const std::vector<PredictedPhase>& phases, const PredictOptions& options,
                            std::int64_t tokens);

}  // namespace mulligan
