#include "framework/model/qwen2/parameters.h"

#include <fmt/format.h>

namespace mulligan::qwen2 {
namespace {

// initializer_range of the published configurations.
constexpr double matrix_init_std = 0.02;

ParameterSpec matrix(std::string name, std::int64_t outputs, std::int64_t inputs, double deviation) {
  return one_law(std::move(name), TensorType(MLG_F32, {outputs, inputs}), Initial::normal, deviation, true);
}

ParameterSpec projection(std::string name, std::int64_t outputs, std::int64_t inputs) {
  return one_law(std::move(name), TensorType(MLG_F32, {outputs, inputs}), Initial::normal, matrix_init_std,
                 true, true);
}

ParameterSpec vector(std::string name, std::int64_t width, double value) {
  return one_law(std::move(name), TensorType(MLG_F32, {width}), Initial::constant, value, false);
}

void add_layer(const ModelConfig& m, std::int64_t layer, std::vector<ParameterSpec>& out) {
  const auto name = [layer](std::string_view of) { return layer_parameter(layer, of); };
  const std::int64_t heads = m.heads * m.head_width, kv_heads = m.kv_heads * m.head_width;
  out.push_back(vector(name("input_layernorm.weight"), m.width, 1));
  for (const auto& [letter, outputs] : {std::pair{'q', heads}, {'k', kv_heads}, {'v', kv_heads}}) {
    out.push_back(projection(name(fmt::format("self_attn.{}_proj.weight", letter)), outputs, m.width));
    out.push_back(vector(name(fmt::format("self_attn.{}_proj.bias", letter)), outputs, 0));
  }
  out.push_back(projection(name("self_attn.o_proj.weight"), m.width, heads));
  out.push_back(vector(name("post_attention_layernorm.weight"), m.width, 1));
  out.push_back(projection(name("mlp.gate_proj.weight"), m.mlp_hidden, m.width));
  out.push_back(projection(name("mlp.up_proj.weight"), m.mlp_hidden, m.width));
  out.push_back(projection(name("mlp.down_proj.weight"), m.width, m.mlp_hidden));
}

}  // namespace

std::string layer_parameter(std::int64_t layer, std::string_view name) {
  return fmt::format("model.layers.{}.{}", layer, name);
}

std::vector<ParameterSpec> model_parameters(const ModelConfig& m) {
  std::vector<ParameterSpec> out;
  out.push_back(matrix(embedding_parameter, m.vocabulary, m.width, m.embedding_init_std));
  for (std::int64_t layer = 0; layer < m.layers; ++layer) add_layer(m, layer, out);
  out.push_back(vector(final_norm_parameter, m.width, 1));
  if (!m.tied_head) out.push_back(matrix(head_parameter, m.vocabulary, m.width, m.embedding_init_std));
  return out;
}

}  // namespace mulligan::qwen2
