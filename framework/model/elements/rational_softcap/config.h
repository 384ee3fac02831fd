// [model.rational_softcap]
#pragma once

#include "framework/config/model_config.h"

namespace mulligan::elements::rational_softcap {

struct Config {
  double cap = 0;  // c of logits = c z / sqrt(z^2 + c^2); 0 = off
};

Config config_of(const ModelConfig& model);

}  // namespace mulligan::elements::rational_softcap
