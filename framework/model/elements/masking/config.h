// [model.masking]: the model fills in masked tokens instead of predicting the next one.
#pragma once

#include <string_view>

#include "framework/config/model_config.h"

namespace mulligan::elements::masking {

// docs/numerics/masked_language_model.md
struct Config {
  double share = 0;           // share of a row's tokens that are predicted; 0: predict the next token
  double mask_share = 0.8;    // share of these that become `token`
  double random_share = 0.1;  // share of these that become a random token of the vocabulary; the rest stay
  std::int64_t token = 0;     // the mask token, which the text does not have
  std::int64_t seed = 0;      // seed of the choice of tokens
};

inline Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "masking.share", config.share);
  read_element(model, "masking.mask_share", config.mask_share);
  read_element(model, "masking.random_share", config.random_share);
  read_element(model, "masking.token", config.token);
  read_element(model, "masking.seed", config.seed);
  return config;
}

}  // namespace mulligan::elements::masking

namespace mulligan {

// Whether the model fills in masked tokens; then each query attends to all of its segment.
inline bool predicts_masked(const ModelConfig& model) {
  return elements::masking::config_of(model).share > 0;
}

// Throws config_error if the model fills in masked tokens. `what` is the action that needs a prediction of the next token,
// such as "text is generated token by token".
void require_next_token(const ModelConfig& model, std::string_view what);

}  // namespace mulligan
