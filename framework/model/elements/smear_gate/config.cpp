#include "framework/model/elements/smear_gate/config.h"

#include "framework/config/model_config.h"

namespace mulligan::elements::smear_gate {

Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "smear_gate.window", config.window);
  read_element(model, "smear_gate.document_start", config.document_start);
  return config;
}

}  // namespace mulligan::elements::smear_gate
