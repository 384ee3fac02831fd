// The keys of rows ([[phase]], [[parameters]], ...), and what the host reads in plugin tables (core_schema.h).
#include "framework/config/core_schema.h"

namespace mulligan {
namespace {

const Schema<PhaseEnd>& phase_end_schema() {
  static const Schema<PhaseEnd> schema = [] {
    Schema<PhaseEnd> s;
    s.key("until_steps", &PhaseEnd::steps,
          "number of updates since the start of training after which the phase ends; 0 = not by steps")
        .at_least(0);
    s.key("until_fraction", &PhaseEnd::fraction,
          "the phase ends when this share of the budget is spent; 0 = not by budget")
        .range(0, 1);
    s.key("until_seconds", &PhaseEnd::seconds,
          "seconds of the training clock after which the phase ends; 0 = not by time")
        .range(0, 1e9);
    s.key("through_fraction", &PhaseEnd::through_fraction,
          "the phase ends when more than this share of the budget is "
          "spent, and still holds where it is exactly that; 0 = not by it")
        .range(0, 1);
    return s;
  }();
  return schema;
}

}  // namespace

const Schema<KernelRow>& kernel_row_schema() {
  static const Schema<KernelRow> schema = [] {
    Schema<KernelRow> s;
    s.key("match", &KernelRow::match, "name of the kernel that is replaced, for example softcap_ce_fwd")
        .required();
    s.key(
         "path", &KernelRow::path,
         ".ptx or .cubin file, relative to this file, with its .json description next to it (docs/triton.md)")
        .required();
    return s;
  }();
  return schema;
}

const std::vector<std::pair<std::string, Precision>>& compute_dtype_words() {
  static const std::vector<std::pair<std::string, Precision>> words = {
      {"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}};
  return words;
}

const std::vector<std::pair<std::string, LayerCast>>& layercast_words() {
  static const std::vector<std::pair<std::string, LayerCast>> words = {
      {"off", LayerCast::off}, {"bf16", LayerCast::bf16}, {"fp16", LayerCast::fp16}};
  return words;
}

const std::vector<std::pair<std::string, NoiseMode>>& noise_words() {
  static const std::vector<std::pair<std::string, NoiseMode>> words = {
      {"off", NoiseMode::off},
      {"bf16_round", NoiseMode::bf16_round},
      {"bf16_stochastic", NoiseMode::bf16_stochastic},
      {"relative", NoiseMode::relative},
      {"norm", NoiseMode::norm},
      {"anneal", NoiseMode::anneal}};
  return words;
}

const Schema<DataMixRow>& data_mix_schema() {
  static const Schema<DataMixRow> schema = [] {
    Schema<DataMixRow> s;
    s.key("name", &DataMixRow::name, "name in log and metrics").required();
    s.key("train", &DataMixRow::train, "training shards of this part, as data.train names them").required();
    s.key("weight", &DataMixRow::weight,
          "its share of the rows read, in proportion to the sum of all weights; 0 = none")
        .range(0, 1e6);
    return s;
  }();
  return schema;
}

const Schema<InitialValuesRow>& initial_values_schema() {
  static const Schema<InitialValuesRow> schema = [] {
    Schema<InitialValuesRow> s;
    s.key("match", &InitialValuesRow::match,
          "glob over whole parameter names, as in [[parameters]], and names of matrices in banks: "
          "blocks.3.attn.c_q.weight")
        .required();
    s.choice<InitialLaw>(
        "law", &InitialValuesRow::law,
        {{"constant", InitialLaw::constant},
         {"normal", InitialLaw::normal},
         {"normal_by_inputs", InitialLaw::normal_by_inputs},
         {"uniform", InitialLaw::uniform},
         {"uniform_by_inputs", InitialLaw::uniform_by_inputs},
         {"signs", InitialLaw::signs}},
        "constant = `scale`; normal = standard deviation `scale`; uniform = between -`scale` and `scale`; "
        "..._by_inputs = the same with scale / sqrt(inputs of the matrix, or of a bias's "
        "matrix); signs = 1 +- `scale`, the same signs in all parameters of a layer");
    s.key("scale", &InitialValuesRow::scale, "what the law is scaled with; in `signs` it may be negative")
        .range(-1e6, 1e6);
    s.key(
         "balanced_from", &InitialValuesRow::balanced_from,
         "with `signs`: from this layer on the layers go in pairs, and of each head's channels one has as many "
         "positive signs as the other has negative ones; -1 = every layer draws for itself")
        .range(-1, 1023);
    return s;
  }();
  return schema;
}

const Schema<Phase>& phase_schema() {
  static const Schema<Phase> schema = [] {
    Schema<Phase> s;
    s.key("name", &Phase::name, "name in log, metrics and report").derived("`phase_N`");
    s.section("", &Phase::until, phase_end_schema());
    s.choice<LayerOrderKind>("layer_order", &Phase::layer_order,
                             {{"plain", LayerOrderKind::plain}, {"looped", LayerOrderKind::looped}},
                             "plain = each layer once, looped = with the repeats of [model.loop]")
        .derived("`looped` with model.loop.extra_passes, else `plain`");
    s.choice<Precision>(
         "compute_dtype", &Phase::compute_dtype, compute_dtype_words(),
         "dtype of activations and of the weights they meet; scores are made in that of the last phase")
        .derived("train.compute_dtype");
    s.choice<LayerCast>(
         "layercast", &Phase::layercast, layercast_words(),
         "how the projections' weights are stored, with compute_dtype fp32, as train.layercast")
        .derived("train.layercast");
    s.key("sequence_length", &Phase::sequence_length, "longest attention segment in tokens")
        .range(1, 1 << 24)
        .derived("train.sequence_length");
    s.key("micro_batches", &Phase::micro_batches,
          "micro-batches per step over all ranks, each of as many tokens as one of train.micro_batches has: "
          "another number is another batch size")
        .range(1, 1 << 20)
        .derived("train.micro_batches");
    s.key("lr_multiplier", &Phase::lr_multiplier, "factor on every optimiser's learning rate").range(0, 1e6);
    s.choice<LrPolicy>(
        "lr_policy", &Phase::lr_policy,
        {{"continue", LrPolicy::continued},
         {"independent", LrPolicy::independent},
         {"rejoin", LrPolicy::rejoin}},
        "continue = the run's one schedule goes on; independent = the schedule from its start to "
        "its end over this phase; rejoin = the run's schedule at the run's step after an "
        "independent phase, which is a warm restart where the rate jumps");
    s.key("reset_optimizer", &Phase::reset_optimizer,
          "the phase begins with empty optimiser states, which then count their updates from 1");
    s.key(
         "rewarm_steps", &Phase::rewarm_steps,
         "number of steps at the start of the phase over which all rates grow linearly, from 1/rewarm_steps of their value; without effect in the phase that training begins with; 0 = none")
        .range(0, 1e6);
    s.key("skip_batches", &Phase::skip_batches,
          "batches of a step that are passed over when the phase begins, as the later "
          "records' loader loses the two it has prepared when the segments' length changes")
        .range(0, 1 << 20);
    s.key(
         "step_seconds", &Phase::step_seconds,
         "seconds of train.budget_seconds that a step counts as, whatever it takes, so that lengths, schedules and phases "
         "follow from the number of steps (docs/one_card.md); in all phases or in none; 0 = what it takes")
        .range(0, 1e6);
    s.choice<NoiseMode>("noise", &Phase::noise, noise_words(),
                        "noise in the gradients of this phase, as noise.mode")
        .derived("noise.mode");
    s.key("noise_factor", &Phase::noise_factor, "factor on noise.sigma in this phase").range(0, 1e6);
    s.key("mix_weights", &Phase::mix_weights,
          "weights of the rows [[data.mix]] in this phase, in their order")
        .range(0, 1e6)
        .derived("the rows' own");
    return s;
  }();
  return schema;
}

const Schema<ParameterRow>& parameter_row_schema() {
  static const Schema<ParameterRow> schema = [] {
    Schema<ParameterRow> s;
    s.key("match", &ParameterRow::match, "glob over parameter names: * any characters, ? one, [abc] a set")
        .required();
    s.key("optimizer", &ParameterRow::optimizer,
          "NAME of the [optimizer.NAME] that updates them; none = they keep their initial values")
        .required();
    s.key("lr_multiplier", &ParameterRow::lr_multiplier, "factor on the optimiser's learning rate")
        .range(0, 1e6);
    s.key("weight_decay_multiplier", &ParameterRow::weight_decay_multiplier,
          "factor on the optimiser's weight decay")
        .range(0, 1e6);
    s.choice<Precision>("master_dtype", &ParameterRow::master_dtype,
                        {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}},
                        "dtype in which the weights are kept and updated");
    s.choice<Communication>(
        "communication", &ParameterRow::communication,
        {{"replicated", Communication::replicated},
         {"sharded", Communication::sharded},
         {"owner", Communication::owner}},
        "every rank updates the whole parameter, or its slice along the first axis, or one "
        "rank the whole for all; such parameters are dealt to the ranks by their size");
    s.choice<Precision>("communication_dtype", &ParameterRow::communication_dtype,
                        {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}},
                        "dtype in which gradients travel between ranks");
    return s;
  }();
  return schema;
}

namespace {

const Schema<QuantizeOptions>& quantize_host_schema() {
  static const Schema<QuantizeOptions> schema = [] {
    Schema<QuantizeOptions> s;
    s.key("calibration_batches", &QuantizeOptions::calibration_batches,
          "batches of training text from which second moments are collected")
        .range(1, 1 << 20);
    s.key("calibration_rows", &QuantizeOptions::calibration_rows,
          "rows of train.sequence_length tokens in a calibration batch")
        .range(1, 1 << 20);
    s.key("calibration_shard_stride", &QuantizeOptions::calibration_shard_stride,
          "rows come from every n-th training shard in the order of names, beginning with the first")
        .range(1, 1 << 20);
    s.choice<Compression>(
        "compression", &QuantizeOptions::compression,
        {{"brotli", Compression::brotli}, {"zlib", Compression::zlib}, {"adaptive", Compression::adaptive}},
        "compression of the artifact, each at its strongest setting; adaptive = codes by "
        "mulligan's own coder, the rest by Brotli");
    s.choice<CodeStreams>("streams", &QuantizeOptions::streams,
                          {{"width", CodeStreams::width},
                           {"role", CodeStreams::role},
                           {"role_ordered", CodeStreams::role_ordered},
                           {"role_all_ordered", CodeStreams::role_all_ordered}},
                          "codes compressed together: those of one width, or of one role "
                          "(embedding, q, ...), transposed, with the rows of embedding, q and "
                          "MLP up (or of all) in the order of nearest neighbours; not for adaptive");
    return s;
  }();
  return schema;
}

}  // namespace

const Schema<QuantizeTensorRow>& quantize_row_schema() {
  static const Schema<QuantizeTensorRow> schema = [] {
    Schema<QuantizeTensorRow> s;
    s.key("match", &QuantizeTensorRow::match,
          "glob over tensor names, in which banks are taken apart: blocks.3.attn.c_q.weight")
        .required();
    s.choice<TensorFormat>(
         "format", &QuantizeTensorRow::format,
         {{"int", TensorFormat::integer},
          {"int8_row", TensorFormat::int8_row},
          {"fp16", TensorFormat::fp16},
          {"bf16", TensorFormat::bf16},
          {"fp32", TensorFormat::fp32}},
         "int = codes by the quantiser plugin, int8_row = 8 bits by each row's largest magnitude")
        .required();
    s.key("bits", &QuantizeTensorRow::bits, "bits of a code; format int only").range(2, 8);
    s.key("clip_sigmas", &QuantizeTensorRow::clip_sigmas,
          "scale of a row = clip_sigmas * std(row) / (2^(bits-1) - 1); format int only")
        .range(1e-3, 1e3);
    s.key(
         "clip_quantile", &QuantizeTensorRow::clip_quantile,
         "range of a row = this quantile of its magnitudes, beyond which weights are clipped; 1 = the largest; "
         "format int8_row only")
        .range(0, 1);
    s.key(
         "least_range", &QuantizeTensorRow::least_range,
         "range of a row whose own is less, so that its codes are no finer than those of this; format int8_row only")
        .range(0, 1e4);
    return s;
  }();
  return schema;
}

std::vector<KeySpec> quantize_host_keys() {
  return quantize_host_schema().keys();
}

void store_quantize_host_keys(QuantizeConfig& quantize) {
  quantize_host_schema().store(quantize.table.host, quantize.options);
}

std::vector<KeySpec> schedule_host_keys() {
  KeySpec horizon;
  horizon.name = "horizon_steps";
  horizon.type = ValueType::integer;
  horizon.default_value = ConfigValue(int64_t{0});
  horizon.minimum = 0;
  horizon.help =
      "steps over which all schedules of the run go, where it ends at other train.steps; 0 = train.steps";
  return {horizon};
}

std::vector<KeySpec> optimizer_host_keys() {
  KeySpec lr;
  lr.name = "lr";
  lr.type = ValueType::real;
  lr.required = true;
  lr.minimum = 0;
  lr.maximum = 1e6;
  lr.help = "base learning rate, multiplied by the schedule and by a parameter row's lr_multiplier";
  return {lr};
}

}  // namespace mulligan
