// The tensors of an artifact: the model's parameters with the banks taken apart into matrices, and for each
// matrix the point of the forward pass whose input it is multiplied with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"
#include "framework/model/taps.h"

namespace mulligan {

struct ArtifactPart {
  std::string name;         // "blocks.3.attn.c_q.weight"; other parameters keep their name
  std::string parameter;    // "qo_bank"
  std::int64_t offset = 0;  // first element within the parameter
  TensorType type;          // f32: the shape
  // Where the linear layer that uses it reads its input; absent for what is not a linear layer's weight.
  std::optional<TapPoint> input;
};

// All parts in their canonical order; together they cover every parameter of `model` exactly once.
std::vector<ArtifactPart> artifact_parts(const ModelConfig& model);

}  // namespace mulligan
