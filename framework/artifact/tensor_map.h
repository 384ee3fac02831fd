// The tensors of an artifact: the model's parameters, with the banks split into matrices. Each matrix of a
// linear layer also names the point of the forward pass where the layer reads its input.
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
  // Where the linear layer reads its input. If the part is not such a layer's weight, this is absent.
  std::optional<TapPoint> input;
};

// All parts in their canonical order; together they cover every parameter of `model` exactly once.
std::vector<ArtifactPart> artifact_parts(const ModelConfig& model);

}  // namespace mulligan
