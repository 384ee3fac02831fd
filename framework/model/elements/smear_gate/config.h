// [model.smear_gate]
#pragma once

#include <cstdint>

#include "framework/config/model_config.h"

namespace mulligan::elements::smear_gate {

struct Config {
  std::int64_t window = 0;          // first dimensions of the embedding that the gate reads; 0 = off
  std::int64_t document_start = 1;  // the token that is not mixed with the one before it; -1 = none
};

// Throws nothing; keys that the table lacks have their defaults.
inline Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "smear_gate.window", config.window);
  read_element(model, "smear_gate.document_start", config.document_start);
  return config;
}

}  // namespace mulligan::elements::smear_gate
