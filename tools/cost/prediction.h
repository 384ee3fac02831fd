// Where a training step's time would go on a card, by arithmetic (mulligan profile --predict), not measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/card.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/profile.h"

namespace mulligan {

struct PredictOptions {
  Card card = known_cards().front();
  int ranks = 1;  // must divide train.micro_batches; the step is that of one of them
  std::int64_t document_tokens =
      0;                   // token-weighted mean length of the documents in a row; 0: whole segments
  ProfileOptions profile;  // by_shape, and which phase; where it names none: all
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

struct Prediction {
  Card card;
  int ranks = 1;
  std::int64_t document_tokens = 0;
  std::int64_t tokens_per_step = 0;  // of all ranks
  std::vector<PredictedPhase> phases;
};

// Makes a step of each phase where nothing is computed (StepRehearsal) and adds up predict_call(). Each
// memset, copy or upload costs a launch or upload_seconds, and its bytes. Changes [backend] in `loaded`.
// Throws Error.
Prediction predict_step(LoadedConfig& loaded, PluginHost& host, const PredictOptions& options);

// As tables for people; ends with a newline.
std::string format_prediction(const Prediction& prediction);
// As one JSON object, with units in the names; ends with a newline.
std::string prediction_json(const Prediction& prediction);

}  // namespace mulligan
