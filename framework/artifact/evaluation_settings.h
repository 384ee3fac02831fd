// What an evaluation needs to know besides the tensors, in one text without names: `mulligan quantize` writes it into the
// artifact, and mulligan_evaluate, which reads no TOML, reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/config/adaptation.h"
#include "framework/config/eval_config.h"
#include "framework/config/model_config.h"

namespace mulligan {

using KeyValues = std::vector<std::pair<std::string, ConfigValue>>;

// A plugin with its resolved keys; without a name: there is none.
struct EvaluationPlugin {
  std::string section, name;  // "ttt.adapters", "doc_lora"
  KeyValues keys;
  bool operator==(const EvaluationPlugin&) const = default;
};

struct EvaluationSettings {
  // How a parameter is held while [ttt.base] trains it; in the model's order.
  struct Master {
    std::int32_t dtype = 0;
    bool trained = true;
  };

  ModelConfig model;
  KeyValues elements;               // of model.elements
  std::vector<std::string> active;  // elements that the evaluator must have
  EvalConfig eval;
  std::int64_t seed = 0;  // of the run
  bool fused_kernels = true;
  bool joined = false;                            // attention crosses documents
  std::int32_t activations = 0, projections = 0;  // dtypes of the forward pass (ComputeTypes)
  EvaluationPlugin backend;
  // Test-time training, where `adapters` has a name.
  TttConfig ttt;
  double lr = 0;
  TransformOrder transform_order = TransformOrder::queue;
  std::vector<Master> masters;
  EvaluationPlugin adapters, optimizer, transform, base, base_optimizer;
};

std::string write_evaluation_settings(const EvaluationSettings& settings);
// Throws data_error for what write_evaluation_settings() has not written.
EvaluationSettings read_evaluation_settings(std::string_view text);

}  // namespace mulligan
