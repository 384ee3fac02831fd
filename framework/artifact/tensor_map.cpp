#include "framework/artifact/tensor_map.h"

#include "framework/model/parameters.h"

namespace mulligan {
namespace {

// Which matrices a bank holds. A bank of `kinds` kinds has `layers` entries of the first, then of the second.
// The projections to q, k and v read the same input.
struct BankRow {
  const char* bank;
  int index, kinds;
  const char* matrix;
  TapKind input;
};
constexpr BankRow bank_rows[] = {
    {"qo_bank", 0, 2, "attn.c_q.weight", TapKind::q},
    {"qo_bank", 1, 2, "attn.proj.weight", TapKind::attention_output},
    {"kv_bank", 0, 2, "attn.c_k.weight", TapKind::q},
    {"kv_bank", 1, 2, "attn.c_v.weight", TapKind::q},
    {"mlp_up_bank", 0, 1, "mlp.fc.weight", TapKind::mlp_up},
    {"mlp_down_bank", 0, 1, "mlp.proj.weight", TapKind::mlp_down},
};

}  // namespace

std::vector<ArtifactPart> artifact_parts(const ModelConfig& model) {
  const std::string head = model.tied_head ? "tok_emb.weight" : "lm_head.weight";
  std::vector<ArtifactPart> parts;
  for (const ParameterSpec& spec : model_parameters(model)) {
    bool bank = false;
    for (const BankRow& row : bank_rows) {
      if (spec.name != row.bank) continue;
      bank = true;
      const std::int64_t layers = spec.type.dims[0] / row.kinds;
      const TensorType matrix(MLG_F32, {spec.type.dims[1], spec.type.dims[2]});
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        parts.push_back({block_parameter(layer, row.matrix), spec.name,
                         (row.index * layers + layer) * matrix.elements(), matrix,
                         TapPoint{row.input, layer}});
      }
    }
    if (bank) continue;
    ArtifactPart part{spec.name, spec.name, 0, spec.type, std::nullopt};
    if (spec.name == head) part.input = TapPoint{TapKind::head, -1};
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace mulligan
