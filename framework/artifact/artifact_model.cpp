#include "framework/artifact/artifact_model.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/model/parameters.h"
#include "framework/run/parameter_store.h"

namespace mulligan {

std::vector<ArtifactPart> artifact_parts(const ModelConfig& model) {
  const std::string head = model.tied_head ? "tok_emb.weight" : "lm_head.weight";
  std::vector<ArtifactPart> parts;
  for (const ParameterSpec& spec : model_parameters(model)) {
    const std::vector<BankMatrix> matrices = bank_matrices(spec);
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const TensorType type(MLG_F32, {spec.type.dims[1], spec.type.dims[2]});
      parts.push_back({matrices[i].name, spec.name, static_cast<std::int64_t>(i) * type.elements(), type,
                       matrices[i].input});
    }
    if (!matrices.empty()) continue;
    ArtifactPart part{spec.name, spec.name, 0, spec.type, std::nullopt};
    if (spec.name == head) part.input = TapPoint{TapKind::head, -1};
    parts.push_back(std::move(part));
  }
  return parts;
}

void require_model(const Artifact& artifact, const ModelConfig& model, const std::string& origin) {
  const std::vector<ArtifactPart> parts = artifact_parts(model);
  if (parts.size() != artifact.tensors.size()) {
    throw data_error(
        "the artifact '{}' holds {} tensors, but the model of its configuration has {}; make it again",
        origin, artifact.tensors.size(), parts.size());
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const QuantizedTensor& tensor = artifact.tensors[i];
    const TensorType& type = parts[i].type;
    const bool same_shape =
        std::ranges::equal(tensor.shape, std::span(type.dims).first(static_cast<std::size_t>(type.rank)));
    if (tensor.name == parts[i].name && same_shape) continue;
    throw data_error(
        "the artifact '{}' holds the tensor '{}' with shape [{}] where the model of its configuration has "
        "'{}', {}; make it again",
        origin, tensor.name, fmt::join(tensor.shape, ", "), parts[i].name, type.text());
  }
}

void load_artifact(const Artifact& artifact, const ModelConfig& model, TensorStore& store,
                   const std::vector<ParameterLayout>& layouts) {
  const std::vector<ArtifactPart> parts = artifact_parts(model);
  for (const ParameterLayout& layout : layouts) {
    std::vector<float> whole(static_cast<std::size_t>(layout.spec.type.elements()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].parameter != layout.spec.name) continue;
      std::ranges::copy(dequantize(artifact.tensors[i]), whole.begin() + parts[i].offset);
    }
    upload_master(store, layout, whole);
  }
}

}  // namespace mulligan
