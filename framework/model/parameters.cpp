#include "framework/model/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/model/elements/stages.h"
#include "framework/model/modded/parameters.h"
#include "framework/model/qwen2/parameters.h"

namespace mulligan {
namespace {

// A bank of L matrices of one kind followed by L of another.
ParameterSpec bank(std::string name, TensorType type, Initial first, Initial second) {
  const std::int64_t layers = type.dims[0] / 2;
  return {std::move(name), type, {{0, layers, first, 0}, {layers, 2 * layers, second, 0}}, true, true};
}

void add_block_parameters(const ModelConfig& m, std::int64_t layer, std::vector<ParameterSpec>& out) {
  const auto add = [&](std::string_view name, TensorType type, Initial kind, double value,
                       bool matrix = false) {
    out.push_back(one_law(block_parameter(layer, name), type, kind, value, matrix));
  };
  add("attn_scale", TensorType(MLG_F32, {m.width}), Initial::constant, 1.0);
  add("mlp_scale", TensorType(MLG_F32, {m.width}), Initial::constant, 1.0);
  if (m.residual_mix) add("resid_mix", TensorType(MLG_F32, {2, m.width}), Initial::residual_mix, 0.0);
  if (m.q_gain != 0) add("attn.q_gain", TensorType(MLG_F32, {m.heads}), Initial::constant, m.q_gain);
  add_element_block_parameters(m, layer, out);
}

// Which matrices a bank holds. A bank of `kinds` kinds has `layers` entries of the first, then of the second.
// The projections to q, k and v read the same input.
struct BankRow {
  const char* bank;
  int kinds;
  const char* matrix;
  TapKind input;
};
constexpr BankRow bank_rows[] = {
    {"qo_bank", 2, "attn.c_q.weight", TapKind::q},
    {"qo_bank", 2, "attn.proj.weight", TapKind::attention_output},
    {"kv_bank", 2, "attn.c_k.weight", TapKind::q},
    {"kv_bank", 2, "attn.c_v.weight", TapKind::q},
    {"mlp_up_bank", 1, "mlp.fc.weight", TapKind::mlp_up},
    {"mlp_down_bank", 1, "mlp.proj.weight", TapKind::mlp_down},
};

}  // namespace

ParameterSpec one_law(std::string name, const TensorType& type, Initial kind, double value, bool matrix,
                      bool projection) {
  return {std::move(name), type, {{0, type.dims[0], kind, value}}, matrix, projection};
}

std::vector<BankMatrix> bank_matrices(const ParameterSpec& parameter) {
  std::vector<BankMatrix> matrices;
  for (const BankRow& row : bank_rows) {
    if (parameter.name != row.bank) continue;
    for (std::int64_t layer = 0; layer < parameter.type.dims[0] / row.kinds; ++layer)
      matrices.push_back({block_parameter(layer, row.matrix), {row.input, layer}});
  }
  return matrices;
}

LayerOrder layer_order(const ModelConfig& model, LayerOrderKind kind) {
  const std::int64_t again = kind == LayerOrderKind::looped ? model.loop.extra_passes : 0;
  std::vector<std::int64_t> order;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    order.push_back(layer);
    for (std::int64_t pass = 0; pass < again && layer == model.loop.last; ++pass) {
      for (std::int64_t looped = model.loop.first; looped <= layer; ++looped) order.push_back(looped);
    }
  }
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  return {{order.begin(), middle}, {middle, order.end()}};
}

std::int64_t skip_rows(const ModelConfig& model) {
  const LayerOrder order = layer_order(model, LayerOrderKind::looped);
  return static_cast<std::int64_t>(std::min(order.encoder.size(), order.decoder.size()));
}

std::string block_parameter(std::int64_t layer, std::string_view name) {
  return fmt::format("blocks.{}.{}", layer, name);
}

std::vector<ParameterSpec> model_parameters(const ModelConfig& m) {
  if (m.family == ModelFamily::qwen2) return qwen2::model_parameters(m);
  if (m.family == ModelFamily::modded) return modded::model_parameters(m);
  const std::int64_t kv_width = m.kv_heads * m.head_width;
  std::vector<ParameterSpec> out;
  const auto add = [&](const char* name, const TensorType& type, Initial kind, double value,
                       bool matrix = false, bool projection = false) {
    out.push_back(one_law(name, type, kind, value, matrix, projection));
  };
  const TensorType table(MLG_F32, {m.vocabulary, m.width});
  add("tok_emb.weight", table, Initial::normal, m.embedding_init_std, true);
  out.push_back(bank("qo_bank", TensorType(MLG_F32, {2 * m.layers, m.width, m.width}), Initial::orthogonal,
                     Initial::zeros));
  out.push_back(bank("kv_bank", TensorType(MLG_F32, {2 * m.layers, kv_width, m.width}), Initial::orthogonal,
                     Initial::orthogonal));
  add("mlp_up_bank", TensorType(MLG_F32, {m.layers, m.mlp_hidden, m.width}), Initial::orthogonal, 0, true,
      true);
  add("mlp_down_bank", TensorType(MLG_F32, {m.layers, m.width, m.mlp_hidden}), Initial::zeros, 0, true, true);
  for (std::int64_t layer = 0; layer < m.layers; ++layer) add_block_parameters(m, layer, out);
  const TensorType skips(MLG_F32, {skip_rows(m), m.width});
  if (m.skip_weights) add("skip_weights", skips, Initial::constant, 1);
  if (m.skip_weights && m.skip_gates) add("skip_gates", skips, Initial::zeros, 0);
  if (m.lanes.parallel_start > 0) {
    add("parallel_post_lambdas", TensorType(MLG_F32, {m.layers, 2, 2}), Initial::constant, 1);
    add("parallel_resid_lambdas", TensorType(MLG_F32, {m.layers, 2}), Initial::constant,
        m.lanes.residual_init);
  }
  if (!m.tied_head) add("lm_head.weight", table, Initial::normal, m.embedding_init_std, true);
  add_element_parameters(m, out);
  return out;
}

std::int64_t parameter_count(const std::vector<ParameterSpec>& parameters) {
  std::int64_t count = 0;
  for (const ParameterSpec& parameter : parameters) count += parameter.type.elements();
  return count;
}

const char* embedding_parameter(const ModelConfig& model) {
  switch (model.family) {
    case ModelFamily::qwen2:
      return qwen2::embedding_parameter;
    case ModelFamily::modded:
      return modded::embedding_parameter;
    default:
      return "tok_emb.weight";
  }
}

const char* head_parameter(const ModelConfig& model) {
  if (model.tied_head) return embedding_parameter(model);
  // The families record and qwen2 give it the same name.
  return model.family == ModelFamily::modded ? modded::head_parameter : qwen2::head_parameter;
}

}  // namespace mulligan
