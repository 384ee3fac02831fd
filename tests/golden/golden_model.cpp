#include "tests/golden/golden_model.h"

namespace mulligan {

ModelConfig golden_model(const nlohmann::json& config) {
  ModelConfig model;
  model.layers = config.at("num_layers");
  model.width = config.at("model_dim");
  model.heads = config.at("num_heads");
  model.kv_heads = config.at("num_kv_heads");
  model.head_width = config.at("head_dim");
  model.rope.dims = config.at("rope_dims");
  model.rope.base = config.at("rope_base");
  model.mlp_hidden = config.at("hidden_dim");
  model.vocabulary = config.at("vocab_size");
  model.xsa_last_layers = config.at("xsa_last_n");
  model.attention_gate = config.at("gated_attn");
  model.ln_scale = config.at("ln_scale");
  model.skip_gates = config.at("skip_gates");
  model.loop.first = config.at("loop_start");
  model.loop.last = config.at("loop_end");
  model.loop.extra_passes = config.at("num_loops");
  model.lanes.parallel_start = config.at("parallel_start_layer");
  model.softcap = config.at("logit_softcap");
  model.norm_eps = config.at("rms_eps");
  model.tied_head = config.at("tie_embeddings");
  const std::string lane = config.at("parallel_final_lane");
  model.lanes.final_lane = lane == "mean"  ? FinalLane::mean
                           : lane == "mlp" ? FinalLane::mlp
                                           : FinalLane::attention;
  resolve_model_defaults(model);
  return model;
}

}  // namespace mulligan
