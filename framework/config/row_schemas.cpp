// The keys of rows ([[phase]], [[parameters]], ...), and what the host reads in plugin tables (core_schema.h).
#include "framework/config/core_schema.h"

namespace mulligan {

void declare_keys(Schema<PhaseEnd>& s) {
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
}

void declare_keys(Schema<KernelRow>& s) {
  s.key("match", &KernelRow::match, "name of the kernel that is replaced, for example softcap_ce_fwd")
      .required();
  s.key("path", &KernelRow::path,
        ".ptx file, relative to this file, with its .json description next to it (docs/triton.md)")
      .required();
}

void declare_keys(Schema<DataMixRow>& s) {
  s.key("name", &DataMixRow::name, "name in log and metrics").required();
  s.key("train", &DataMixRow::train, "training shards of this part, as data.train names them").required();
  s.key("weight", &DataMixRow::weight,
        "its share of the rows read, in proportion to the sum of all weights; 0 = none")
      .range(0, 1e6);
}

void declare_keys(Schema<InitialValuesRow>& s) {
  s.key("match", &InitialValuesRow::match,
        "glob over whole parameter names, as in [[parameters]], and names of matrices in banks: "
        "blocks.3.attn.c_q.weight")
      .required();
  s.key("law", &InitialValuesRow::law,
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
}

void declare_keys(Schema<Phase>& s) {
  s.key("name", &Phase::name, "name in log, metrics and report").derived("`phase_N`");
  s.section("", &Phase::until);
  s.key("layer_order", &Phase::layer_order,
        "plain = each layer once, looped = with the repeats of [model.loop]")
      .derived("`looped` with model.loop.extra_passes, else `plain`");
  s.key("compute_dtype", &Phase::compute_dtype,
        "dtype of activations and of the weights they meet; scores are made in that of the last phase")
      .derived("train.compute_dtype");
  s.key("layercast", &Phase::layercast,
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
  s.key("lr_policy", &Phase::lr_policy,
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
  s.key("noise", &Phase::noise, "noise in the gradients of this phase, as noise.mode").derived("noise.mode");
  s.key("noise_factor", &Phase::noise_factor, "factor on noise.sigma in this phase").range(0, 1e6);
  s.key("mix_weights", &Phase::mix_weights, "weights of the rows [[data.mix]] in this phase, in their order")
      .range(0, 1e6)
      .derived("the rows' own");
}

void declare_keys(Schema<ParameterRow>& s) {
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
  s.key("master_dtype", &ParameterRow::master_dtype, "dtype in which the weights are kept and updated")
      .one_of({"fp32", "bf16"});
  s.key("communication", &ParameterRow::communication,
        "every rank updates the whole parameter, or its slice along the first axis, or one "
        "rank the whole for all; such parameters are dealt to the ranks by their size");
  s.key("communication_dtype", &ParameterRow::communication_dtype,
        "dtype in which gradients travel between ranks")
      .one_of({"fp32", "bf16"});
}

void declare_keys(Schema<QuantizeOptions>& s) {
  s.key("calibration_batches", &QuantizeOptions::calibration_batches,
        "batches of training text from which second moments are collected")
      .range(1, 1 << 20);
  s.key("calibration_rows", &QuantizeOptions::calibration_rows,
        "rows of train.sequence_length tokens in a calibration batch")
      .range(1, 1 << 20);
  s.key("calibration_shard_stride", &QuantizeOptions::calibration_shard_stride,
        "rows come from every n-th training shard in the order of names, beginning with the first")
      .range(1, 1 << 20);
  s.key("compression", &QuantizeOptions::compression,
        "compression of the artifact, each at its strongest setting; adaptive = codes by "
        "mulligan's own coder, the rest by Brotli");
  s.key("streams", &QuantizeOptions::streams,
        "codes compressed together: those of one width, or of one role "
        "(embedding, q, ...), transposed, with the rows of embedding, q and "
        "MLP up (or of all) in the order of nearest neighbours; not for adaptive");
}

void declare_keys(Schema<QuantizeTensorRow>& s) {
  s.key("match", &QuantizeTensorRow::match,
        "glob over tensor names, in which banks are taken apart: blocks.3.attn.c_q.weight")
      .required();
  s.key("format", &QuantizeTensorRow::format,
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
}

void declare_keys(Schema<EnsembleOptions>& s) {
  s.key("members", &EnsembleOptions::members, "models whose probabilities are averaged").range(1, 1 << 16);
  s.key("seed", &EnsembleOptions::seed, "seed of the members' random numbers, independent of run.seed")
      .at_least(0);
  s.key("chunk_mebibytes", &EnsembleOptions::chunk_mebibytes,
        "host memory for averaged probabilities, which bounds how many "
        "tokens all members score before the next; no score depends on it")
      .range(1, 1 << 20);
  s.key("count_members", &EnsembleOptions::count_members,
        "the bytes of all members, stored, count against ledger.artifact_bytes; without it "
        "ledger.rules = \"strict\" refuses an ensemble");
}

void declare_keys(Schema<ScheduleOptions>& s) {
  s.key("horizon_steps", &ScheduleOptions::horizon_steps,
        "steps over which all schedules of the run go, where it ends at other train.steps; 0 = train.steps")
      .at_least(0);
}

void declare_keys(Schema<OptimizerConfig>& s) {
  s.key("lr", &OptimizerConfig::lr,
        "base learning rate, multiplied by the schedule and by a parameter row's lr_multiplier")
      .range(0, 1e6)
      .required();
}

}  // namespace mulligan
