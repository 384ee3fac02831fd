#include "framework/model/modded/parameters.h"

#include <cmath>

namespace mulligan::modded {
namespace {

constexpr double inner_variance = 0.33;  // times the inputs of a matrix

ParameterSpec of_values(std::string name, TensorType type, Initial kind, double value, std::int64_t inputs) {
  ParameterSpec spec = one_law(std::move(name), type, kind, value, type.rank == 2);
  spec.inputs = inputs;
  return spec;
}

ParameterSpec gains(std::string name, std::int64_t width) {
  return of_values(std::move(name), TensorType(MLG_F32, {width}), Initial::constant, 1, width);
}

// A matrix and its bias; `deviation` 0: zeros.
void add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, double deviation,
                bool projection, std::vector<ParameterSpec>& out) {
  out.push_back(of_values(name + ".weight", TensorType(MLG_F32, {outputs, inputs}),
                          deviation > 0 ? Initial::normal : Initial::zeros, deviation, inputs));
  out.back().projection = projection;
  out.push_back(of_values(name + ".bias", TensorType(MLG_F32, {outputs}), Initial::zeros, 0, inputs));
}

void add_block(const ModelConfig& m, std::int64_t layer, std::vector<ParameterSpec>& out) {
  const auto name = [layer](std::string_view of) { return block_parameter(layer, of); };
  const std::int64_t heads = m.heads * m.head_width, kv_heads = m.kv_heads * m.head_width;
  const double deviation = std::sqrt(inner_variance / static_cast<double>(m.width));
  out.push_back(gains(name("norm1.gains"), m.width));
  add_linear(name("attn.q"), heads, m.width, deviation, true, out);
  add_linear(name("attn.k"), kv_heads, m.width, deviation, true, out);
  add_linear(name("attn.v"), kv_heads, m.width, deviation, true, out);
  add_linear(name("attn.proj"), m.width, heads, 0, true, out);
  out.push_back(gains(name("norm2.gains"), m.width));
  add_linear(name("mlp.fc"), m.mlp_hidden, m.width, deviation, true, out);
  add_linear(name("mlp.proj"), m.width, m.mlp_hidden, 0, true, out);
}

}  // namespace

std::vector<ParameterSpec> model_parameters(const ModelConfig& m) {
  std::vector<ParameterSpec> out;
  out.push_back(of_values(embedding_parameter, TensorType(MLG_F32, {m.vocabulary, m.width}), Initial::normal,
                          m.embedding_init_std, m.width));
  out.push_back(gains(embedding_norm_parameter, m.width));
  for (std::int64_t layer = 0; layer < m.layers; ++layer) add_block(m, layer, out);
  out.push_back(gains(final_norm_parameter, m.width));
  add_linear("proj", m.vocabulary, m.width, 0, false, out);
  return out;
}

}  // namespace mulligan::modded
