#include "framework/model/elements/rational_softcap/config.h"

#include "framework/config/model_config.h"

namespace mulligan::elements::rational_softcap {

Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "rational_softcap.cap", config.cap);
  return config;
}

}  // namespace mulligan::elements::rational_softcap
