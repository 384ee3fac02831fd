#include "tools/doctor/tap_names.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "framework/graph/row_rules.h"
#include "framework/model/qwen2/parameters.h"

namespace mulligan::doctor {
namespace {

struct Mention {
  std::string parameter;    // empty: the call reads none
  std::int64_t index = -1;  // of the entry of the first dimension, where it reads one
};

// How the two families begin the names of a layer's parameters.
constexpr std::string_view layer_prefixes[] = {"blocks.", "model.layers."};

// The layer that a parameter belongs to; -1: none.
std::int64_t layer_of(const Mention& mention, std::int64_t layers) {
  if (mention.parameter.ends_with("_bank") && mention.index >= 0) return mention.index % layers;
  for (const std::string_view prefix : layer_prefixes) {
    if (!mention.parameter.starts_with(prefix)) continue;
    const char* begin = mention.parameter.data() + prefix.size();
    std::int64_t layer = -1;
    std::from_chars(begin, mention.parameter.data() + mention.parameter.size(), layer);
    return layer;
  }
  return -1;
}

// "q" for "model.layers.3.self_attn.q_proj.weight"; empty where there is no "_proj".
std::string projection_of(const std::string& parameter) {
  const std::size_t end = parameter.rfind("_proj.");
  if (end == std::string::npos) return {};
  const std::size_t begin = parameter.rfind('.', end) + 1;
  const std::string name = parameter.substr(begin, end - begin);
  return name == "o" ? "o_proj" : name;
}

std::string product_name(const Mention& weight, std::int64_t layers) {
  if (weight.parameter == "qo_bank") return weight.index < layers ? "q" : "o_proj";
  if (weight.parameter == "kv_bank") return weight.index < layers ? "k" : "v";
  if (weight.parameter == "mlp_up_bank") return "up";
  if (weight.parameter == "mlp_down_bank") return "down";
  if (weight.parameter == "tok_emb.weight" || weight.parameter == "lm_head.weight" ||
      weight.parameter == qwen2::embedding_parameter)
    return "logits";
  if (const std::string projection = projection_of(weight.parameter); !projection.empty()) return projection;
  if (weight.parameter.ends_with("attn_gate_w")) return "gate";
  return weight.parameter.empty() ? "product" : weight.parameter;
}

}  // namespace

std::vector<std::string> tap_names(const Graph& graph, const ModelConfig& model,
                                   const std::vector<ParameterLayout>& layouts) {
  std::map<std::string, std::string, std::less<>> parameters;
  for (const ParameterLayout& layout : layouts) parameters[layout.read_name()] = layout.spec.name;
  std::map<std::uint32_t, Mention>
      scaled;  // weights that are a parameter's but for scale or width of their rows
  const auto mention_of = [&](Value value) -> Mention {
    if (const auto known = scaled.find(value ? graph.root(value).id : 0); known != scaled.end())
      return known->second;
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
    if (call.kernel == "matmul" || call.kernel == "widened_matmul") {
      name = product_name(mention_of(call.arguments[1]), model.layers);
    } else if (call.kernel == "row_bias_fwd") {
      name = projection_of(mention_of(call.arguments[1]).parameter) + " (post-bias)";
    } else if (call.kernel == "qk_norm_rope_fwd") {
      name = gained ? "k (post-rope)" : "q (post-rope)";
      gained = !gained;
    } else if (const KernelRows* known = rows_of_kernel(call.kernel); known && !known->label.empty()) {
      name = known->label;
    }
    if (call.kernel == "scale_rows_fwd")
      scaled[graph.root(call.arguments[2]).id] = mention_of(call.arguments[0]);
    if (call.kernel == "concat_rows_fwd" && !call.arguments[1]) {
      scaled[graph.root(call.arguments[4]).id] = mention_of(call.arguments[0]);
      name = "widened gate weight";
    }
    // What the head multiplies is the final norm.
    if (name == "logits" && !names.empty() && names.back().starts_with("norm")) names.back() = "final_norm";
    const bool of_layer = layer >= 0 && name != "logits" && name != "capped logits" && name != "nll";
    names.push_back(of_layer ? fmt::format("{} of layer {}", name, layer) : name);
  }
  return names;
}

}  // namespace mulligan::doctor
