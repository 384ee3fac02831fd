// [model.sparse_gate]
#pragma once

#include <cstdint>

#include "framework/config/model_config.h"

namespace mulligan::elements::sparse_gate {

struct Config {
  std::int64_t window = 0;  // first dimensions of the normed input that the gate reads; 0 = off
  double scale = 0.5;       // of the gate's logit, before the sigmoid
};

Config config_of(const ModelConfig& model);

}  // namespace mulligan::elements::sparse_gate
