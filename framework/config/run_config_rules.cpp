#include <algorithm>
#include <array>
#include <cmath>

#include "framework/config/core_schema.h"
#include "framework/config/model_elements.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

void check_model(const ModelConfig& m, const Settings& s) {
  config_error_if(m.family == ModelFamily::record && m.heads * m.head_width != m.width,
                  "{} is {}, but {} times {} is {}; choose a width that is heads * head_width.",
                  s.where("model.width"), m.width, s.where("model.heads"), s.where("model.head_width"),
                  m.heads * m.head_width);
  config_error_if(m.head_width == 0,
                  "{} is {}, less than {} = {}, so that a head has no dimensions; choose fewer heads.",
                  s.where("model.width"), m.width, s.where("model.heads"), m.heads);
  config_error_if(m.heads % m.kv_heads != 0,
                  "{} is {}, which {} = {} does not divide; choose a divisor of the query heads.",
                  s.where("model.heads"), m.heads, s.where("model.kv_heads"), m.kv_heads);
  config_error_if(m.head_width % 2 != 0,
                  "{} is {}, but must be even, since RoPE rotates pairs of dimensions.",
                  s.where("model.head_width"), m.head_width);
  config_error_if(
      m.rope.form == RopeForm::half_truncated && (m.rope.dims % 4 != 0 || m.rope.dims < 8),
      "{} is \"half_truncated\", which turns a quarter of the {} = {} dimensions with as many others; choose a "
      "multiple of 4, at least 8.",
      s.where("model.rope.form"), s.where("model.rope.dims"), m.rope.dims);
  config_error_if(m.rope.dims % 2 != 0 || m.rope.dims > m.head_width,
                  "{} is {}, but must be even and at most {} = {}.", s.where("model.rope.dims"), m.rope.dims,
                  s.where("model.head_width"), m.head_width);
  config_error_if(
      m.loop.extra_passes > 0 && (m.loop.first > m.loop.last || m.loop.last >= m.layers),
      "the loop from {} = {} to {} = {} does not lie in the layers 0 to {} of {}; correct the range or set "
      "model.loop.extra_passes = 0.",
      s.where("model.loop.first"), m.loop.first, s.where("model.loop.last"), m.loop.last, m.layers - 1,
      s.where("model.layers"));
  config_error_if(m.lanes.parallel_start >= m.layers,
                  "{} is {}, but the last layer of {} is {}; choose an earlier layer, or 0 for no lanes.",
                  s.where("model.lanes.parallel_start"), m.lanes.parallel_start, s.where("model.layers"),
                  m.layers - 1);
  config_error_if(m.skip_gates && !m.skip_weights,
                  "{} is on, but {} is off, so there is nothing to gate; set model.skip_gates = false.",
                  s.where("model.skip_gates"), s.where("model.skip_weights"));
}

void check_train(const TrainConfig& t, const Settings& s) {
  config_error_if(t.tokens_per_step % t.micro_batches != 0,
                  "{} is {}, which {} = {} does not divide; each micro-batch needs a whole number of tokens.",
                  s.where("train.tokens_per_step"), t.tokens_per_step, s.where("train.micro_batches"),
                  t.micro_batches);
  // Host memory for a micro-batch is allocated before its device memory is checked.
  constexpr std::int64_t largest = 1 << 24;
  config_error_if(t.tokens_per_step / t.micro_batches > largest,
                  "{} is {}, in {} = {} rows of more than {} tokens each; set more micro-batches.",
                  s.where("train.tokens_per_step"), t.tokens_per_step, s.where("train.micro_batches"),
                  t.micro_batches, largest);
  config_error_if(t.budget_seconds == 0.0 && t.steps == 0,
                  "{} and {} are both 0, so training would never end; set one of them.",
                  s.where("train.budget_seconds"), s.where("train.steps"));
  for (const double step : t.validate_at) {
    if (step == std::floor(step) && (t.steps == 0 || step <= static_cast<double>(t.steps))) continue;
    throw config_error("{} has {}, which is no step of the {} of {}; list whole numbers of steps.",
                       s.where("train.validate_at"), step, t.steps, s.where("train.steps"));
  }
  config_error_if(t.reserve_seconds > 0.0 && t.reserve_seconds >= t.budget_seconds,
                  "{} is {}, but must be less than {} = {}.", s.where("train.reserve_seconds"),
                  t.reserve_seconds, s.where("train.budget_seconds"), t.budget_seconds);
  config_error_if(
      t.loss_reduction == LossReduction::sum && t.clip_norm > 0 && t.clip_order != ClipOrder::after_reduction,
      "{} is \"sum\", but {} clips the mean of each rank or micro-batch; set train.clip_order = \"after_reduction\".",
      s.where("train.loss_reduction"), s.where("train.clip_order"));
}

void check_fp8(const RunConfig& c, const Settings& s) {
  if (!c.train.fp8_head) return;
  config_error_if(c.model.family == ModelFamily::modded,
                  "{} is on, but the head of {} = \"modded\" adds a bias; leave it out.",
                  s.where("train.fp8_head"), s.where("model.family"));
  const bool in_fp16 =
      std::ranges::any_of(c.phases, [](const Phase& phase) { return phase.compute_dtype == MLG_F16; });
  config_error_if(
      in_fp16 || c.loss_scale.mode == LossScaleMode::constant || c.loss_scale.mode == LossScaleMode::dynamic,
      "{} is on, whose gradients have a fixed scale, but {} moves gradients; compute in fp32 or bf16 without it.",
      s.where("train.fp8_head"), in_fp16 ? "the loss scale of fp16" : s.where("loss_scale.mode"));
}

void check_data(const RunConfig& c, const LoadedConfig& loaded) {
  const bool written = loaded.core.at("data.train").origin.kind != Origin::Kind::defaulted;
  config_error_if(
      !written && c.data.mix.empty(),
      "{}: the required key 'data.train' is missing (training shards); set it to a text, or give rows "
      "[[data.mix]].",
      loaded.file);
  config_error_if(!c.data.train.empty() && !c.data.mix.empty(),
                  "{} and rows [[data.mix]] both name training shards; leave one of them out.",
                  loaded.core.where("data.train"));
}

// A stream is read once, in steps of equal size. Each row begins where the previous one ends.
void check_stream(const RunConfig& c, const Settings& s) {
  if (c.data.order != DataOrder::stream) return;
  const std::string order = s.where("data.order");
  config_error_if(!c.data.mix.empty(),
                  "{} is \"stream\", but rows [[data.mix]] read several streams; leave one of them out.",
                  order);
  config_error_if(
      c.train.steps == 0,
      "{} is \"stream\", which reads the text once, but {} is 0, so the number of tokens is unknown; set "
      "train.steps.",
      order, s.where("train.steps"));
  for (const Phase& phase : c.phases) {
    if (phase.micro_batches == c.train.micro_batches) continue;
    throw config_error(
        "{} is \"stream\", but the phase '{}' has {} micro_batches where {} is {}; a stream has steps of one size.",
        order, phase.name, phase.micro_batches, s.where("train.micro_batches"), c.train.micro_batches);
  }
}

void check_joined(const RunConfig& c, const Settings& s) {
  if (c.data.documents != DataDocuments::joined) return;
  const std::int64_t row = tokens_per_micro_batch(c.train);
  config_error_if(
      row % c.train.sequence_length != 0,
      "{} is \"joined\", but the {} tokens of a micro-batch are no whole rows of {} = {} tokens; choose a "
      "divisor.",
      s.where("data.documents"), row, s.where("train.sequence_length"), c.train.sequence_length);
  config_error_if(c.ttt.has_value(),
                  "{} is \"joined\", but [ttt] adapts to each document; leave one of them out.",
                  s.where("data.documents"));
}

void check_ema(const RunConfig& c, const Settings& s) {
  const EmaConfig& e = c.ema;
  config_error_if(e.partial() && e.decay == 0,
                  "[ema] has settings of an average, but {} is 0, so there is none; set it.",
                  s.where("ema.decay"));
  config_error_if(e.until_step > 0 && e.until_step <= e.from_step,
                  "{} is {}, but the average begins after update {} = {}; choose a later one.",
                  s.where("ema.until_step"), e.until_step, s.where("ema.from_step"), e.from_step);
  if (e.from_step == 0 && e.until_step == 0) return;
  for (const Phase& phase : c.phases) {
    if (!phase.reset_optimizer) continue;
    throw config_error(
        "the phase '{}' resets the optimisers, and {} and ema.until_step count updates since that reset; leave one "
        "of them out.",
        phase.name, s.where("ema.from_step"));
  }
}

void check_noise(const RunConfig& c, const Settings& s) {
  config_error_if(c.noise.from_fraction >= c.noise.until_fraction, "{} is {}, but must be less than {} = {}.",
                  s.where("noise.from_fraction"), c.noise.from_fraction, s.where("noise.until_fraction"),
                  c.noise.until_fraction);
  const bool any = std::ranges::any_of(c.phases, [](const Phase& p) { return p.noise != NoiseMode::off; });
  config_error_if(
      any && c.noise.order == NoiseOrder::before_clip && c.train.clip_norm > 0 &&
          c.train.clip_order != ClipOrder::after_reduction,
      "{} is \"before_clip\", but noise is added to the gradient reduced over ranks, and {} clips before "
      "that; set noise.order = \"after_clip\".",
      s.where("noise.order"), s.where("train.clip_order"));
}

// Only powers of two make scaling and its inverse exact.
void check_loss_scale(const LossScaleConfig& scale, const Settings& s) {
  const auto require = [&](const char* key, double value) {
    int exponent = 0;
    if (std::frexp(value, &exponent) == 0.5) return;
    throw config_error("{} is {}, which is not a power of two; {} and {} are the nearest.", s.where(key),
                       value, std::ldexp(0.5, exponent), std::ldexp(1.0, exponent));
  };
  require("loss_scale.initial", scale.initial);
  require("loss_scale.growth", scale.growth);
  require("loss_scale.backoff", scale.backoff);
}

void check_eval(const EvalConfig& e, const Settings& s) {
  config_error_if(e.mode == EvalMode::sliding && e.stride > e.sequence_length,
                  "{} is {}, but a window has only {} = {} tokens, so some would never be scored.",
                  s.where("eval.stride"), e.stride, s.where("eval.sequence_length"), e.sequence_length);
  config_error_if(e.shares > 0 && e.mode == EvalMode::sliding,
                  "{} is {}, but {} is \"sliding\", and windows are not cut into shares; leave it out.",
                  s.where("eval.shares"), e.shares, s.where("eval.mode"));
  config_error_if(
      e.shares > 0 && e.drop_remainder,
      "{} is {}, but {} is on, which cuts the text by the number of ranks; leave one of them out.",
      s.where("eval.shares"), e.shares, s.where("eval.drop_remainder"));
}

// Checks the settings before scoring. The ledger counts the tokens of each result (run_ledger.h).
void check_strict(const RunConfig& c, const Settings& s) {
  if (c.ledger.rules != LedgerRules::strict || (!c.eval.drop_remainder && c.eval.tokens == 0)) return;
  throw config_error(
      "{} leaves validation tokens unscored, and under {} = \"strict\" a result is of the whole set; leave it "
      "out.",
      s.where(c.eval.drop_remainder ? "eval.drop_remainder" : "eval.tokens"), s.where("ledger.rules"));
}

void check_parameters(const LoadedConfig& loaded) {
  const RunConfig& c = loaded.config;
  config_error_if(
      c.optimizers.empty(),
      "{}: there is no [optimizer.NAME] table; add one, for example [optimizer.all] with plugin = "
      "\"adamw\" and lr = 0.001.",
      loaded.file);
  config_error_if(c.parameters.empty(),
                  "{}: there is no [[parameters]] row; add one with match = \"*\" and optimizer = \"{}\".",
                  loaded.file, c.optimizers.front().name);
  std::vector<std::string> names;
  for (const OptimizerConfig& optimizer : c.optimizers) {
    config_error_if(
        optimizer.name == no_optimizer,
        "{}: [optimizer.{}] has the name that rows of [[parameters]] use for parameters without an optimiser; give "
        "the table another name.",
        loaded.file, no_optimizer);
    names.push_back(optimizer.name);
  }
  for (size_t i = 0; i < c.parameters.size(); ++i) {
    const ParameterRow& row = c.parameters[i];
    if (row.optimizer == no_optimizer || std::ranges::find(names, row.optimizer) != names.end()) continue;
    throw config_error(
        "{}: optimizer = \"{}\" names no [optimizer.NAME] table; there are: {}; \"none\" excludes parameters "
        "from training.",
        loaded.rows.at("parameters")[i].at("optimizer").origin.text(), row.optimizer, fmt::join(names, ", "));
  }
}

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

// Refuses a run with arena.track that would train another model, read other data or in other batches, be scored otherwise, or
// end otherwise than after train.steps. The files themselves: framework/run/training_data.h.
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

}  // namespace

void check_family(const RunConfig& written, const Settings& s) {
  if (written.model.family == ModelFamily::record) return;
  RunConfig record = written, own = written;
  record.model.family = ModelFamily::record;
  resolve_model_defaults(record.model);
  resolve_model_defaults(own.model);
  const auto& keys = schema_of<RunConfig>().keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& name = keys[i].name;
    if (!name.starts_with("model.") || name == "model.family" || name == "model.norm_eps") continue;
    const Origin::Kind origin = s.at(name).origin.kind;
    if (origin == Origin::Kind::defaulted || origin == Origin::Kind::derived) continue;
    const auto& get = schema_of<RunConfig>().bindings()[i].get;
    if (get(record) == get(own)) continue;
    throw config_error(
        "{}: the family \"{}\" has no such part; remove the key, or set model.family = \"record\".",
        s.where(name), word_of(written.model.family));
  }
}

void check_rules(const LoadedConfig& loaded) {
  const RunConfig& c = loaded.config;
  check_model(c.model, loaded.core);
  for (const ElementDeclaration& element : declared_elements()) {
    if (element.check) element.check(c.model, loaded.core);
    if (element.check_run) element.check_run(c, loaded.core);
  }
  check_data(c, loaded);
  check_train(c.train, loaded.core);
  check_fp8(c, loaded.core);
  check_stream(c, loaded.core);
  check_joined(c, loaded.core);
  check_ema(c, loaded.core);
  check_noise(c, loaded.core);
  check_loss_scale(c.loss_scale, loaded.core);
  check_eval(c.eval, loaded.core);
  check_strict(c, loaded.core);
  check_parameters(loaded);
  check_arena(loaded);
}

}  // namespace mulligan
