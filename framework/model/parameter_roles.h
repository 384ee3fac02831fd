// Which parameters of a model play the parts that every family has.
#pragma once

#include "framework/config/model_config.h"

namespace mulligan {

// The token embedding [V, d], and the matrix that makes logits, [V, d]: the embedding where the head is tied.
const char* embedding_parameter(const ModelConfig& model);
const char* head_parameter(const ModelConfig& model);

}  // namespace mulligan
