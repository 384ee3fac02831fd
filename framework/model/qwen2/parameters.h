// The parameters of the family qwen2, under the names of its published weights, so that such a file needs no name map.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/model/parameters.h"

namespace mulligan::qwen2 {

// "model.layers.3.self_attn.q_proj.weight" for (3, "self_attn.q_proj.weight").
std::string layer_parameter(std::int64_t layer, std::string_view name);

inline constexpr const char* embedding_parameter = "model.embed_tokens.weight";
inline constexpr const char* final_norm_parameter = "model.norm.weight";
inline constexpr const char* head_parameter = "lm_head.weight";  // not with a tied head

// In the order of the forward pass. Matrices are [outputs, inputs]. Initial values: norms 1, biases 0, the
// embedding normal with model.embedding_init_std, other matrices normal with 0.02.
std::vector<ParameterSpec> model_parameters(const ModelConfig& model);

}  // namespace mulligan::qwen2
