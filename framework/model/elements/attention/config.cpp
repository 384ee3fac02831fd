#include "framework/model/elements/attention/config.h"

#include "framework/config/model_config.h"

namespace mulligan::elements::attention {

Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "attention.stabilize", config.stabilize, config_words<Stabilize>);
  read_element(model, "attention.beta", config.beta);
  read_element(model, "attention.tolerance", config.tolerance);
  read_element(model, "attention.min_repeats", config.min_repeats);
  read_element(model, "attention.cap", config.cap);
  read_element(model, "attention.normalizer", config.normalizer, config_words<Normalizer>);
  read_element(model, "attention.output_rounding", config.output_rounding, config_words<OutputRounding>);
  return config;
}

}  // namespace mulligan::elements::attention
