// The trained model as test-time training finds it.
#pragma once

#include <vector>

#include "framework/config/model_config.h"
#include "framework/config/ttt_config.h"
#include "framework/run/loaded_model.h"

namespace mulligan {

// Masters, and where the compute dtype differs their copies, lie in `store` under the names of `layouts`.
struct BaseModel {
  TensorStore& store;
  const ModelConfig& config;
  const std::vector<ParameterLayout>& layouts;
  DType compute = MLG_F32;
  LayerOrderKind layer_order = LayerOrderKind::plain;  // recurrent models are scored looped
};

// Of what test-time training loads.
inline LoadedModel::Masters base_masters(const TttSection& ttt) {
  if (ttt.config.base_keeps_dtypes) return LoadedModel::Masters::as_trained;
  return ttt.base ? LoadedModel::Masters::fp32 : LoadedModel::Masters::scored;
}

// A view: `model` and `config` must outlive it.
inline BaseModel base_model(LoadedModel& model, const RunConfig& config) {
  return {model.store(), config.model, model.layouts(), model.compute(), scored_order(config.model)};
}

}  // namespace mulligan
