// The trained model as test-time training finds it.
#pragma once

#include <vector>

#include "framework/config/model_config.h"
#include "framework/graph/tensor_store.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// Masters, and where the compute dtype differs their copies, lie in `store` under the names of `layouts`.
struct BaseModel {
  TensorStore& store;
  const ModelConfig& config;
  const std::vector<ParameterLayout>& layouts;
  DType compute = MLG_F32;
  bool looping = false;  // the layer order; recurrent models are scored looped
};

// Brings the copies up to date with the masters.
void refresh_copies(const BaseModel& model);

}  // namespace mulligan
