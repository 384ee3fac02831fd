#include "framework/config/model_config.h"

#include <algorithm>
#include <initializer_list>

namespace mulligan {
namespace {

// `elements`: those that the family has.
void switch_off_parts_of_the_record(ModelConfig& model, std::initializer_list<const char*> elements) {
  model.softcap = 0;
  model.ln_scale = model.residual_mix = model.qk_norm = false;
  model.q_gain = model.mlp_negative_slope = 0;
  model.xsa_last_layers = 0;
  model.attention_gate = model.skip_weights = model.skip_gates = false;
  model.loop = {};
  model.lanes = {};
  std::erase_if(model.elements, [&](const auto& setting) {
    return std::ranges::none_of(
        elements, [&](const std::string& name) { return setting.first.starts_with(name + "."); });
  });
}

// What Qwen2's configurations have where they say nothing.
constexpr double qwen2_norm_eps = 1e-6;

}  // namespace

void resolve_model_defaults(ModelConfig& model) {
  if (model.family == ModelFamily::qwen2) {
    switch_off_parts_of_the_record(model, {"attention"});
    if (model.norm_eps == 0) model.norm_eps = qwen2_norm_eps;
  }
  if (model.family == ModelFamily::modded) {
    switch_off_parts_of_the_record(model, {"attention", "rational_softcap"});
    model.qk_norm = true;
    model.tied_head = false;
    model.embedding_init_std = 1;
  }
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.head_width == 0 && model.heads > 0) model.head_width = model.width / model.heads;
  if (model.mlp_hidden == 0) model.mlp_hidden = 4 * model.width;
  if (model.rope.dims == 0) model.rope.dims = model.head_width;
  if (model.xsa_last_layers < 0) model.xsa_last_layers = model.layers;
}

}  // namespace mulligan
