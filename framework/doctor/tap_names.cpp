#include "framework/doctor/tap_names.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "framework/model/qwen2/parameters.h"

namespace mulligan::doctor {
namespace {

struct Mention {
  std::string parameter;    // empty: the call reads none
  std::int64_t index = -1;  // of the entry of the first dimension, where it reads one
};

constexpr std::string_view block_prefix = "blocks.";
constexpr std::string_view layer_prefix = "model.layers.";  // of the family qwen2

// The layer that a parameter belongs to; -1: none.
std::int64_t layer_of(const Mention& mention, std::int64_t layers) {
  if (mention.parameter.ends_with("_bank") && mention.index >= 0) return mention.index % layers;
  const std::string_view prefix = mention.parameter.starts_with(layer_prefix) ? layer_prefix : block_prefix;
  if (!mention.parameter.starts_with(prefix)) return -1;
  const char* begin = mention.parameter.data() + prefix.size();
  std::int64_t layer = -1;
  std::from_chars(begin, mention.parameter.data() + mention.parameter.size(), layer);
  return layer;
}

std::string product_name(const Mention& weight, std::int64_t layers) {
  if (weight.parameter == "qo_bank") return weight.index < layers ? "q" : "o_proj";
  if (weight.parameter == "kv_bank") return weight.index < layers ? "k" : "v";
  if (weight.parameter == "mlp_up_bank") return "up";
  if (weight.parameter == "mlp_down_bank") return "down";
  if (weight.parameter == "tok_emb.weight" || weight.parameter == "lm_head.weight") return "logits";
  if (weight.parameter.ends_with("attn_gate_w")) return "gate";
  if (weight.parameter == qwen2::embedding_parameter) return "logits";
  for (const char* name : {"q", "k", "v", "o_proj", "gate", "up", "down"}) {
    const std::string_view point = name;
    const bool whole = point.ends_with("_proj");
    if (weight.parameter.ends_with(fmt::format(".{}{}.weight", point, whole ? "" : "_proj"))) return name;
  }
  return weight.parameter.empty() ? "product" : weight.parameter;
}

const std::map<std::string, const char*, std::less<>> names_of_kernels = {
    {"attention_fwd", "attn_out"},
    {"axpby", "mean of the lanes"},
    {"concat_rows_fwd", "packed q, k, v weights"},
    {"cross_entropy_fwd", "nll"},
    {"embedding_fwd", "embed"},
    {"head_gate_xsa_fwd", "gated attn_out"},
    {"lane_merge_fwd", "resid of both lanes"},
    {"leaky_relu_squared_fwd", "act"},
    {"linear_leaky_relu_squared_fwd", "up and act"},
    {"qkv_split_norm_rope_fwd", "q and k (post-rope)"},
    {"residual_chain_fwd", "resid and norm"},
    {"residual_mix_norm_fwd", "norm before attention"},
    {"rms_norm_fwd", "norm"},
    {"row_bias_fwd", "bias"},
    {"scaled_add_norm_fwd", "resid and norm"},
    {"silu_gate_fwd", "act"},
    {"skip_merge_fwd", "skip connection"},
    {"softcap_fwd", "capped logits"},
    {"weighted_rms_norm_fwd", "norm"},
};

}  // namespace

std::vector<std::string> tap_names(const Graph& graph, const ModelConfig& model,
                                   const std::vector<ParameterLayout>& layouts) {
  std::map<std::string, std::string, std::less<>> parameters;
  for (const ParameterLayout& layout : layouts) parameters[layout.read_name()] = layout.spec.name;
  const auto mention_of = [&](Value value) -> Mention {
    const auto found = value ? parameters.find(graph.info(graph.root(value)).name) : parameters.end();
    if (found == parameters.end()) return {};
    const Graph::ValueInfo& info = graph.info(value);
    const bool part = info.storage == Graph::Storage::view && info.type.elements() > 0;
    return {found->second, part ? info.offset / info.type.elements() : -1};
  };
  std::vector<std::string> names;
  std::int64_t layer = -1;
  bool gained = false;  // q is rotated before k
  for (const Call& call : graph.calls()) {
    for (const Value argument : call.arguments) {
      const std::int64_t mentioned = layer_of(mention_of(argument), model.layers);
      if (mentioned >= 0) layer = mentioned;
    }
    std::string name = call.kernel;
    if (call.kernel == "matmul") {
      name = product_name(mention_of(call.arguments[1]), model.layers);
    } else if (call.kernel == "qk_norm_rope_fwd") {
      name = gained ? "k (post-rope)" : "q (post-rope)";
      gained = !gained;
    } else if (const auto found = names_of_kernels.find(call.kernel); found != names_of_kernels.end()) {
      name = found->second;
    }
    // What the head multiplies is the final norm.
    if (name == "logits" && !names.empty() && names.back().starts_with("norm")) names.back() = "final_norm";
    const bool of_layer = layer >= 0 && name != "logits" && name != "capped logits" && name != "nll";
    names.push_back(of_layer ? fmt::format("{} of layer {}", name, layer) : name);
  }
  return names;
}

}  // namespace mulligan::doctor
