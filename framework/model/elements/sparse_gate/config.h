// [model.sparse_gate]
#pragma once

#include <cstdint>

#include "framework/config/model_config.h"

namespace mulligan::elements::sparse_gate {

struct Config {
  std::int64_t window = 0;  // first dimensions of the normed input that the gate reads; 0 = off
  double scale = 0.5;       // of the gate's logit, before the sigmoid
};

// Throws nothing; keys that the table lacks have their defaults.
inline Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "sparse_gate.window", config.window);
  read_element(model, "sparse_gate.scale", config.scale);
  return config;
}

}  // namespace mulligan::elements::sparse_gate
