// The trained model as test-time training finds it.
#pragma once

#include <vector>

#include "framework/graph/tensor_store.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// Masters, and where the compute dtype differs their copies, lie in `store` under the names of `layouts`.
struct BaseModel {
  TensorStore& store;
  const ModelConfig& config;
  const std::vector<ParameterLayout>& layouts;
  DType compute = MLG_F32;
  LayerOrderKind layer_order = LayerOrderKind::plain;  // recurrent models are scored looped
};

}  // namespace mulligan
