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

ModelConfig golden_later_model(const nlohmann::json& config) {
  ModelConfig model;
  model.layers = config.at("layers");
  model.width = config.at("dim");
  model.heads = config.at("heads");
  model.kv_heads = config.at("kv_heads");
  model.head_width = config.at("head_dim");
  model.rope.dims = config.at("rope_dims");
  model.mlp_hidden = config.at("mlp_hidden");
  model.vocabulary = config.at("vocab");
  model.ln_scale = config.at("ln_scale");
  model.loop.first = config.at("loop").at(0);
  model.loop.last = config.at("loop").at(1);
  model.loop.extra_passes = config.at("num_loops");
  model.lanes.parallel_start = config.at("parallel_start");
  model.softcap = config.at("softcap");
  if (config.at("xsa").is_number()) model.xsa_last_layers = config.at("xsa");
  model.attention_gate = false;
  model.elements["smear_gate.window"] = model.elements["sparse_gate.window"] =
      ConfigValue(config.at("gate_window").get<std::int64_t>());
  model.elements["smear_gate.document_start"] = ConfigValue(config.at("bos").get<std::int64_t>());
  model.elements["sparse_gate.scale"] = ConfigValue(config.at("sparse_gate_scale").get<double>());
  model.elements["asymmetric_softcap.enabled"] = ConfigValue(true);
  const std::string lane = config.at("final_lane");
  model.lanes.final_lane = lane == "mean"  ? FinalLane::mean
                           : lane == "mlp" ? FinalLane::mlp
                                           : FinalLane::attention;
  resolve_model_defaults(model);
  return model;
}

ModelConfig golden_arena_model(const nlohmann::json& config, const nlohmann::json& sizes) {
  ModelConfig model;
  model.family = ModelFamily::modded;
  model.vocabulary = sizes.at("vocab");
  model.layers = sizes.at("layers");
  model.width = sizes.at("width");
  model.heads = sizes.at("heads");
  model.head_width = sizes.at("head_dim");
  model.attention_scale = config.at("attention_scale");
  model.rope.form = RopeForm::half_truncated;
  model.rope.base = 1024;
  model.elements["rational_softcap.cap"] = ConfigValue(config.at("softcap").get<double>());
  resolve_model_defaults(model);
  return model;
}

}  // namespace mulligan
