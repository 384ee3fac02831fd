// [model.rational_softcap]
#pragma once

#include "framework/config/model_config.h"

namespace mulligan::elements::rational_softcap {

struct Config {
  double cap = 0;  // c of logits = c z / sqrt(z^2 + c^2); 0 = off
};

// Throws nothing; keys that the table lacks have their defaults.
inline Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "rational_softcap.cap", config.cap);
  return config;
}

}  // namespace mulligan::elements::rational_softcap
