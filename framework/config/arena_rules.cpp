#include <algorithm>
#include <array>

#include "framework/config/core_schema.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

constexpr const char* way_out = "or leave out [arena] for a run outside of the benchmark";

// What the benchmark fixes; what a member does not say is its default.
RunConfig benchmark() {
  RunConfig fixed;
  fixed.data.order = DataOrder::stream;
  fixed.data.documents = DataDocuments::joined;
  fixed.model.family = ModelFamily::modded;
  fixed.model.vocabulary = 50304;
  fixed.model.layers = 12;
  fixed.model.width = 768;
  fixed.model.heads = 6;
  fixed.model.attention_scale = 0.12;
  fixed.model.rope.form = RopeForm::half_truncated;
  fixed.model.rope.base = 1024;
  fixed.model.elements["rational_softcap.cap"] = ConfigValue(15.0);
  resolve_model_defaults(fixed.model);
  fixed.train.tokens_per_step = 524288;
  fixed.train.sequence_length = 1024;
  fixed.train.loss_reduction = LossReduction::sum;
  fixed.eval.sequence_length = 1024;
  fixed.eval.tokens = 10485760;
  return fixed;
}

bool is_fixed(const std::string& key) {
  constexpr std::array others = {"data.tokenizer",
                                 "data.order",
                                 "data.documents",
                                 "train.budget_seconds",
                                 "train.tokens_per_step",
                                 "train.sequence_length",
                                 "train.loss_reduction",
                                 "init.from",
                                 "eval.mode",
                                 "eval.sequence_length",
                                 "eval.tokens",
                                 "eval.shares",
                                 "eval.drop_remainder"};
  return key.starts_with("model.") || std::ranges::find(others, key) != others.end();
}

// The word of the file for no tokenizer; other values as TOML has them.
std::string value_text(const std::string& key, const ConfigValue& value) {
  return key == "data.tokenizer" && value.string().empty() ? "\"none\"" : to_toml(value);
}

void check_fixed_keys(const RunConfig& config, const Settings& settings) {
  const RunConfig fixed = benchmark();
  const auto& keys = schema_of<RunConfig>().keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& name = keys[i].name;
    if (!is_fixed(name)) continue;
    const auto& get = schema_of<RunConfig>().bindings()[i].get;
    const ConfigValue is = get(config), must = get(fixed);
    if (is == must) continue;
    throw config_error("{} is {}, but the benchmark of {} has {}; set that, {}.", settings.where(name),
                       value_text(name, is), settings.where("arena.track"), value_text(name, must), way_out);
  }
}

void check_phases(const RunConfig& config) {
  for (const Phase& phase : config.phases) {
    if (phase.sequence_length == config.train.sequence_length &&
        phase.micro_batches == config.train.micro_batches && phase.skip_batches == 0)
      continue;
    throw config_error(
        "the phase '{}' has rows or batches of its own, but every step of the benchmark of arena.track reads the same; "
        "take sequence_length, micro_batches and skip_batches out of the phase, {}.",
        phase.name, way_out);
  }
}

}  // namespace

void check_arena(const LoadedConfig& loaded) {
  const RunConfig& config = loaded.config;
  if (config.arena.track == ArenaTrack::none) return;
  const std::string track = loaded.core.where("arena.track");
  const auto refuse = [&](const std::string& what, const char* how) {
    throw config_error("{}, but a run of {} has none; {}, {}.", what, track, how, way_out);
  };
  if (config.quantize) refuse("[quantize] makes an artifact", "take it out");
  if (config.ttt) refuse("[ttt] trains on what is scored", "take it out");
  if (!config.data.mix.empty()) refuse("rows [[data.mix]] read several texts", "name one with data.train");
  check_fixed_keys(config, loaded.core);
  check_phases(config);
  config_error_if(
      config.loss.plugin != "cross_entropy",
      "the loss is '{}', but that of {} is cross_entropy; set loss.plugin = \"cross_entropy\", {}.",
      config.loss.plugin, track, way_out);
  config_error_if(
      config.train.warmup.steps > 0 && config.train.warmup.keep_muon_momentum,
      "{} keeps what warm-up steps left, which are passes beyond one for each step of {}; turn it off, {}.",
      loaded.core.where("train.warmup.keep_muon_momentum"), track, way_out);
}

}  // namespace mulligan
