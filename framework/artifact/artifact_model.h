// Between an artifact's tensors and the model's parameters.
#pragma once

#include <string>
#include <vector>

#include "framework/artifact/artifact_file.h"
#include "framework/config/model_config.h"
#include "framework/graph/tensor_store.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// Throws data_error, naming the tensor, unless the artifact holds exactly the parts of `model`, with their
// shapes and in their order. `origin` names the artifact.
void require_model(const Artifact& artifact, const ModelConfig& model, const std::string& origin);

// Dequantises everything into the f32 masters of `layouts`, which must exist in `store`.
// Precondition: require_model passed.
void load_artifact(const Artifact& artifact, const ModelConfig& model, TensorStore& store,
                   const std::vector<ParameterLayout>& layouts);

}  // namespace mulligan
