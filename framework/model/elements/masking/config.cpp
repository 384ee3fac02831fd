#include "framework/model/elements/masking/config.h"

#include "framework/config/model_config.h"

namespace mulligan::elements::masking {

Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "masking.share", config.share);
  read_element(model, "masking.mask_share", config.mask_share);
  read_element(model, "masking.random_share", config.random_share);
  read_element(model, "masking.token", config.token);
  read_element(model, "masking.seed", config.seed);
  return config;
}

}  // namespace mulligan::elements::masking
