// How [model.masking] hides tokens of the rows that a model is trained and scored on.
#pragma once

#include <optional>
#include <string>

#include "framework/config/model_config.h"
#include "framework/data/masking.h"

namespace mulligan {

// Absent where the model predicts the next token. `bos_id` begins documents.
std::optional<MaskingOptions> masking_options(const ModelConfig& model, int bos_id);

// What is hidden, in words: equal where losses are of the same tokens, hidden alike. Empty where the model predicts
// the next token.
std::string masking_text(const ModelConfig& model);

}  // namespace mulligan
