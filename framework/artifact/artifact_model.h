// The tensors of an artifact: the model's parameters, with the banks split into matrices. Each matrix of a
// linear layer also names the point of the forward pass where the layer reads its input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/artifact/artifact_file.h"
#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"
#include "framework/graph/tensor_store.h"
#include "framework/model/parameter_values.h"
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

// Throws data_error, naming the tensor, unless the artifact holds exactly the parts of `model`, with their
// shapes and in their order. `origin` names the artifact.
void require_model(const Artifact& artifact, const ModelConfig& model, const std::string& origin);

// Dequantises everything into the f32 masters of `layouts`, which must exist in `store`.
// Precondition: require_model passed.
void load_artifact(const Artifact& artifact, const ModelConfig& model, TensorStore& store,
                   const std::vector<ParameterLayout>& layouts);

}  // namespace mulligan
