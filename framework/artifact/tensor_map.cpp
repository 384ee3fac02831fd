#include "framework/artifact/tensor_map.h"

#include "framework/model/parameters.h"

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

}  // namespace mulligan
