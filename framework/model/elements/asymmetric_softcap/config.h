// [model.asymmetric_softcap]
#pragma once

#include "framework/config/model_config.h"

namespace mulligan::elements::asymmetric_softcap {

struct Config {
  bool enabled = false;
};

// Throws nothing; keys that the table lacks have their defaults.
inline Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "asymmetric_softcap.enabled", config.enabled);
  return config;
}

}  // namespace mulligan::elements::asymmetric_softcap
