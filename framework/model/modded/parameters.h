// The parameters of the family modded, under the names of the published script of the Modded-NanoGPT optimisation benchmark
// (track 3). The benchmark's rules and tables use these names.
#pragma once

#include <vector>

#include "framework/model/parameters.h"

namespace mulligan::modded {

inline constexpr const char* embedding_parameter = "embed.weight";
inline constexpr const char* embedding_norm_parameter = "norm1.gains";
inline constexpr const char* final_norm_parameter = "norm2.gains";
inline constexpr const char* head_parameter = "proj.weight";

// In the order of the forward pass. Matrices are [outputs, inputs], each with a bias. Initial values are those of the
// benchmark's baseline. The embedding is normal with variance 1; q, k, v and mlp.fc are normal with variance 0.33 / inputs;
// attn.proj, mlp.proj, the head and biases are 0; gains are 1.
std::vector<ParameterSpec> model_parameters(const ModelConfig& model);

}  // namespace mulligan::modded
