// The one small configuration that tests begin with; what a test is about it sets itself, as --set does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/config/run_config.h"

namespace mulligan {

// Without an optimiser. Lines are counted by tests: [data] is line 1.
inline constexpr std::string_view kSmallRun = R"([data]
train = "t"
validation = "v"
tokenizer = "k.model"
[model]
vocabulary = 64
layers = 4
width = 32
heads = 4
[train]
steps = 10
tokens_per_step = 256
)";
// The rest of a whole one: an optimiser that takes every parameter.
inline constexpr std::string_view kOneOptimizer = R"([optimizer.all]
plugin = "adamw"
lr = 0.01
[[parameters]]
match = "*"
optimizer = "all"
)";
inline const std::string kSmallConfig = std::string(kSmallRun) + std::string(kOneOptimizer);

// That configuration with further tables and overrides. Throws config_error.
inline LoadedConfig small_config(const std::vector<std::string>& sets, const std::string& more = {}) {
  return parse_run_config(kSmallConfig + more, "small.toml", sets);
}

// The published record's model: 35,989,658 parameters.
inline ModelConfig record_model() {
  ModelConfig model;
  model.vocabulary = 8192;
  model.layers = 11;
  model.width = 512;
  model.heads = 8;
  model.kv_heads = 4;
  model.rope.dims = 16;
  model.loop = {3, 5, 2, 0.35};
  model.lanes.parallel_start = 8;
  resolve_model_defaults(model);
  return model;
}

// A model of two heads and width 16.
inline ModelConfig small_model(std::int64_t vocabulary, std::int64_t layers) {
  ModelConfig model;
  model.vocabulary = vocabulary;
  model.layers = layers;
  model.width = 16;
  model.heads = 2;
  model.kv_heads = 1;
  model.mlp_hidden = 24;
  resolve_model_defaults(model);
  return model;
}

}  // namespace mulligan
