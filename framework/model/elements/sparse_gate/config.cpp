#include "framework/model/elements/sparse_gate/config.h"

#include "framework/config/model_config.h"

namespace mulligan::elements::sparse_gate {

Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "sparse_gate.window", config.window);
  read_element(model, "sparse_gate.scale", config.scale);
  return config;
}

}  // namespace mulligan::elements::sparse_gate
