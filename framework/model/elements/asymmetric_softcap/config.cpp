#include "framework/model/elements/asymmetric_softcap/config.h"

#include "framework/config/model_config.h"

namespace mulligan::elements::asymmetric_softcap {

Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "asymmetric_softcap.enabled", config.enabled);
  return config;
}

}  // namespace mulligan::elements::asymmetric_softcap
