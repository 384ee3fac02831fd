#include "framework/config/core_schema.h"

#include "framework/config/model_elements.h"

namespace mulligan {

void declare_keys(Schema<RunSection>& s) {
  s.key("name", &RunSection::name, "name of the run, shown in reports")
      .derived("the file's name without .toml");
  s.key("directory", &RunSection::directory, "folder that receives log, metrics, checkpoints and result")
      .derived("`runs/<name>`");
  s.key("seed", &RunSection::seed, "seed of all random numbers (initial weights, order of sampling)")
      .at_least(0);
  s.key("threads", &RunSection::threads, "host and CPU-backend threads; 0 = all cores").range(0, 4096);
  s.key("determinism", &RunSection::determinism,
        "run = the same run twice is bit-identical, batch = also each row whatever rows are "
        "computed with it, world = also for any world size; refused where it cannot be kept");
  s.key(
      "fused_kernels", &RunSection::fused_kernels,
      "compute neighbouring calls in one fused kernel where the backend has one; results differ by rounding");
  s.key("require_libraries", &RunSection::require_libraries,
        "refuse a run on a device that lacks the library its backend is fast with "
        "(cuDNN's attention on a GPU), before its clock starts, in place of a warning");
}

void declare_keys(Schema<DataConfig>& s) {
  s.key("train", &DataConfig::train,
        "training shards: a glob, or a folder (the training shards of its manifest); left out where rows "
        "[[data.mix]] name them");
  s.key("validation", &DataConfig::validation,
        "validation shards: a glob, or a folder (the validation shards of its manifest)")
      .required();
  s.key(
       "tokenizer", &DataConfig::tokenizer,
       "SentencePiece model file of the shards' tokenizer; none = there is none, and scores are in nats alone")
      .required();
  s.key(
      "order", &DataConfig::order,
      "spans = rows of a token more than they train on, from a shard's first document on, again "
      "and again; stream = every shard once, from its first token on, each row beginning with "
      "the last target of the one before (docs/arena.md); shuffled = the rows of spans, drawn from all shards in an order "
      "that run.seed decides, another one in each pass: for text whose documents are longer than rows, or sorted");
  s.key("documents", &DataConfig::documents,
        "joined = attention crosses documents: rows are cut every sequence_length tokens and nowhere else");
  s.key(
      "validation_bytes", &DataConfig::validation_bytes,
      "byte side tables of the validation shards, a glob or a folder: the original bytes of each token, for "
      "shards of transformed text; empty = those of the shards' manifest, and where it has none the "
      "tokenizer's pieces count");
  s.key(
      "validation_documents", &DataConfig::validation_documents,
      "JSON Lines file of the original validation documents, in the order of the shards, with which the side "
      "tables are compared; empty = the manifest's, or no comparison");
  s.key(
      "byte_rule", &DataConfig::byte_rule,
      "bytes that bits per byte are divided by: original = of the validation documents as they were given; "
      "tokenizer = of the text that the tokens spell, or of published byte side tables, as a contest may define it");
  s.key(
      "exact_vocabulary", &DataConfig::exact_vocabulary,
      "refuse a tokenizer with another number of pieces than model.vocabulary; else more ids than pieces are "
      "padding");
  s.key("prefetch", &DataConfig::prefetch, "micro-batches the loader keeps ready").range(1, 1024);
}

void declare_keys(Schema<RopeConfig>& s) {
  s.key("dims", &RopeConfig::dims, "dimensions of each head that are rotated, even; 0 = all")
      .range(0, 1024)
      .derived("`model.head_width`");
  s.key("base", &RopeConfig::base, "frequencies lie between 1 and 1 / base").range(1, 1e9);
  s.key("form", &RopeConfig::form,
        "geometric = pair i turns with frequency base^(-2i/dims); half_truncated = base^(-i/(n-1)) "
        "for the first n = dims/4 pairs, and the others are not turned");
  s.key("table", &RopeConfig::table, "rounding of the frequencies; cos and sin are f32");
}

void declare_keys(Schema<LoopConfig>& s) {
  s.key("first", &LoopConfig::first, "first layer that is repeated, counted from 0").range(0, 1023);
  s.key("last", &LoopConfig::last, "last layer that is repeated, inclusive").range(0, 1023);
  s.key("extra_passes", &LoopConfig::extra_passes,
        "additional passes through first..last; 0 = no depth recurrence")
      .range(0, 64);
  s.key("start_fraction", &LoopConfig::start_fraction,
        "fraction of the training budget after which the repetition starts; evaluation always repeats")
      .range(0, 1);
}

void declare_keys(Schema<LanesConfig>& s) {
  s.key("parallel_start", &LanesConfig::parallel_start,
        "layer from which, in the decoder half, attention and MLP run in two parallel lanes; 0 = off")
      .range(0, 1023);
  s.key("final", &LanesConfig::final_lane,
        "what leaves the last layer: the mean of both lanes or one of them");
  s.key("residual_init", &LanesConfig::residual_init, "initial weight of a lane's own residual stream")
      .range(-100, 100);
}

void declare_keys(Schema<ModelConfig>& s) {
  const auto declare_elements = [&s](bool in_tables) {
    for (const ElementDeclaration& element : declared_elements()) {
      if (element.table.empty() != in_tables) element.keys(s, element.name);
    }
  };
  s.key("family", &ModelConfig::family,
        "the forward pass: the record's, with the switches below, that of Qwen2.5 (docs/qwen2.md) "
        "or that of the optimiser benchmark of Modded-NanoGPT (docs/arena.md), which have none "
        "of them");
  s.key("vocabulary", &ModelConfig::vocabulary, "number of tokens of the tokenizer")
      .range(2, 1 << 18)
      .required();
  s.key("layers", &ModelConfig::layers, "number of physical layers").range(1, 1024).required();
  s.key("width", &ModelConfig::width, "model width d").range(2, 65536).required();
  s.key("heads", &ModelConfig::heads, "query heads").range(1, 1024).required();
  s.key("kv_heads", &ModelConfig::kv_heads, "key/value heads, a divisor of heads; 0 = heads")
      .range(0, 1024)
      .derived("`model.heads`");
  s.key("head_width", &ModelConfig::head_width,
        "dimensions of a head, even; heads * head_width = width in the family record; 0 = derived")
      .range(0, 1024)
      .derived("`model.width / model.heads`");
  s.key("attention_scale", &ModelConfig::attention_scale,
        "factor on the scores, query times key, before the softmax; 0 = 1 / sqrt(head_width)")
      .range(0, 1e3);
  s.key("mlp_hidden", &ModelConfig::mlp_hidden, "hidden units of the MLP; 0 = derived")
      .range(0, 1 << 20)
      .derived("`4 * model.width`");
  s.key("mlp_negative_slope", &ModelConfig::mlp_negative_slope,
        "s of the MLP's activation (u > 0 ? u : s u)^2; 0 = max(u, 0)^2")
      .range(0, 1);
  s.key("tied_head", &ModelConfig::tied_head, "use the token embedding as output head");
  s.key("norm_eps", &ModelConfig::norm_eps,
        "eps of every RMS norm; 0 = machine epsilon of fp32, family qwen2: 1e-6")
      .range(0, 1);
  s.key("ln_scale", &ModelConfig::ln_scale, "multiply normed block inputs by 1/sqrt(layer + 1)");
  s.key("residual_mix", &ModelConfig::residual_mix,
        "learned mix of the residual stream with the embedding before a block");
  s.key("qk_norm", &ModelConfig::qk_norm, "RMS norm of queries and keys per head");
  s.key("q_gain", &ModelConfig::q_gain, "initial per-head gain on queries after RoPE; 0 = no gain")
      .range(0, 1e3);
  declare_elements(false);
  s.key("skip_weights", &ModelConfig::skip_weights, "weighted skip connections from encoder to decoder half");
  s.key("skip_gates", &ModelConfig::skip_gates, "sigmoid gate of each skip connection; needs skip_weights");
  s.key("embedding_init_std", &ModelConfig::embedding_init_std, "standard deviation of the initial embedding")
      .range(0, 10);
  s.section("rope", &ModelConfig::rope);
  s.section("loop", &ModelConfig::loop);
  s.section("lanes", &ModelConfig::lanes);
  declare_elements(true);
}

void declare_keys(Schema<InitConfig>& s) {
  s.key(
      "from", &InitConfig::from,
      "weights that training starts from: a .safetensors file, or a folder with model.safetensors; names and "
      "shapes must be the model's; empty = drawn with run.seed");
  s.key("expect_sha256", &InitConfig::expect_sha256, "sha256 that this file must have; empty = any");
}

void declare_keys(Schema<WarmupConfig>& s) {
  s.key("steps", &WarmupConfig::steps, "steps per layer order before the clock starts, undone afterwards")
      .range(0, 1e6);
  s.key("keep_muon_momentum", &WarmupConfig::keep_muon_momentum,
        "keep the optimiser states of the warm-up steps whose plugins say that they "
        "survive it (Muon's momentum), as the record's script did on several GPUs");
}

void declare_keys(Schema<TrainConfig>& s) {
  s.key("budget_seconds", &TrainConfig::budget_seconds,
        "seconds of training; 0 = no limit, then steps ends the run")
      .range(0, 1e9);
  s.key("reserve_seconds", &TrainConfig::reserve_seconds, "seconds of the budget kept back at its end")
      .range(0, 1e9);
  s.key("steps", &TrainConfig::steps,
        "upper limit of optimiser steps; 0 = none, then the budget ends the run")
      .at_least(0);
  s.key("tokens_per_step", &TrainConfig::tokens_per_step, "tokens per optimiser step over all ranks")
      .at_least(1)
      .required();
  s.key("micro_batches", &TrainConfig::micro_batches,
        "micro-batches per step over all ranks, one packed row each; the number of ranks must divide it, "
        "left out, several ranks make one each")
      .range(1, 1 << 20);
  s.key("micro_batch_parts", &TrainConfig::micro_batch_parts,
        "passes in which a micro-batch is computed, cut between its segments; takes less memory and changes "
        "nothing but the rounding of sums (docs/one_card.md)")
      .range(1, 1 << 10);
  s.key("sequence_length", &TrainConfig::sequence_length,
        "longest attention segment in tokens; longer documents are cut")
      .range(1, 1 << 24);
  s.key("compute_dtype", &TrainConfig::compute_dtype, "dtype of activations and of the weights they meet");
  s.key(
      "layercast", &TrainConfig::layercast,
      "with compute_dtype fp32: dtype in which the projections' weights are stored; matmuls widen them as they "
      "read them (docs/numerics/layercast.md)");
  s.key(
      "fp8_head", &TrainConfig::fp8_head,
      "in training the head multiplies numbers of FP8: E4M3, its gradients E5M2, each with a fixed scale; rounded "
      "to them and multiplied in compute_dtype (docs/numerics/fp8_head.md)");
  s.key("loss_reduction", &TrainConfig::loss_reduction,
        "what is differentiated: the mean of the losses of a step's targets, or their sum; "
        "losses are reported as means in either case");
  s.key("clip_norm", &TrainConfig::clip_norm, "largest global gradient norm; 0 = no clipping").range(0, 1e9);
  s.key(
      "clip_order", &TrainConfig::clip_order,
      "clip each rank's own gradient, that of each micro-batch (docs/one_card.md), or the gradient reduced over ranks");
  s.key("log_every", &TrainConfig::log_every, "steps between lines of the log and of metrics.jsonl")
      .at_least(1);
  s.key("validate_every", &TrainConfig::validate_every, "steps between validations; 0 = only at the end")
      .at_least(0);
  s.key("validate_at", &TrainConfig::validate_at,
        "numbers of steps after which to validate, besides those of validate_every")
      .at_least(1);
  s.key(
       "validations", &TrainConfig::validations,
       "number of validations during training, at equal shares of the budget, besides those of validate_every; their seconds count against no budget")
      .range(0, 1000);
  s.section("warmup", &TrainConfig::warmup);
}

void declare_keys(Schema<ParallelConfig>& s) {
  s.key("strategy", &ParallelConfig::strategy,
        "how ranks share the update: as the rows of [[parameters]] say, or each updates "
        "everything from gradients summed in fp32, for comparison");
}

void declare_keys(Schema<EmaConfig>& s) {
  s.key("decay", &EmaConfig::decay, "decay per step of the averaged weights; 0 = no averaging").range(0, 1);
  s.key(
       "from_step", &EmaConfig::from_step,
       "the average begins with the weights after this update; until then the weights are scored; 0 = with the "
       "initial weights")
      .at_least(0);
  s.key("until_step", &EmaConfig::until_step,
        "from this update on the average stays as it is; 0 = it follows to the end")
      .at_least(0);
  s.key("blend", &EmaConfig::blend, "share of the average in the weights that are scored and saved")
      .range(0, 1);
  s.key(
      "exclude", &EmaConfig::exclude,
      "globs: parameters without an average, whose weights are scored; a glob that matches none is an error");
}

void declare_keys(Schema<CheckpointConfig>& s) {
  s.key("every_steps", &CheckpointConfig::every_steps, "steps between checkpoints; 0 = not by steps")
      .at_least(0);
  s.key("every_seconds", &CheckpointConfig::every_seconds,
        "seconds of training between checkpoints; 0 = not by time")
      .range(0, 1e9);
  s.key("at_end", &CheckpointConfig::at_end, "also write one after the last step, before validation");
  s.key("keep", &CheckpointConfig::keep, "newest checkpoints that stay; older ones are removed").at_least(1);
  s.key("directory", &CheckpointConfig::directory, "folder of the checkpoints")
      .derived("`<run.directory>/checkpoints`");
}

void declare_keys(Schema<MetricsConfig>& s) {
  s.key(
      "hf_compat", &MetricsConfig::hf_compat,
      "also report train_loss_hf, the sum of the losses since the process started divided by all steps since the first: no mean after a resume; only to compare with logs made that way");
  s.key("energy", &MetricsConfig::energy,
        "measure the energy that training takes: CPUs by powercap, GPUs by the driver's counter "
        "(docs/numerics/data_parallel.md)");
  s.key("tensorboard", &MetricsConfig::tensorboard,
        "also write an event file for TensorBoard while training, into RUN/tensorboard");
  s.key("attention_every", &MetricsConfig::attention_every,
        "steps between events `attention` in metrics.jsonl: largest logit, "
        "rows with repeated maxima, rounding of each layer's attention "
        "and norms of its weights, on a row of at most 256 tokens; 0 = none")
      .range(0, 1e9);
}

void declare_keys(Schema<DoctorConfig>& s) {
  s.key("level", &DoctorConfig::level,
        "checks of data, loss, weights and evaluation before the first "
        "step, and of the scores: none, those that take moments, or all that "
        "`mulligan doctor` makes; a run that fails one is refused without --force");
}

void declare_keys(Schema<NoiseConfig>& s) {
  s.key("mode", &NoiseConfig::mode,
        "what is added to gradients: their rounding to bf16 (to the nearest, or stochastic), or "
        "normal noise relative to each element, to the norm of each tensor, or with a variance "
        "of sigma / (1 + t)^0.55 after t updates");
  s.key("sigma", &NoiseConfig::sigma,
        "strength of `relative` and `norm` (standard deviation) and of `anneal` (variance at the start); the "
        "default is the relative error of rounding to bf16; 0 = none")
      .range(0, 1e6);
  s.key("from_fraction", &NoiseConfig::from_fraction, "share of the budget from which on noise is added")
      .range(0, 1);
  s.key("until_fraction", &NoiseConfig::until_fraction,
        "share of the budget up to which it is added, exclusive; 1 = to the end")
      .range(0, 1);
  s.key("order", &NoiseConfig::order,
        "before or after the gradient is clipped; in either case to the gradient reduced over ranks");
}

void declare_keys(Schema<LossScaleConfig>& s) {
  s.key("mode", &LossScaleConfig::mode,
        "auto = dynamic in phases that compute in fp16 and none in others; static = `initial`; dynamic = it "
        "grows, and is lowered where a gradient is not finite, whose update is skipped");
  s.key("initial", &LossScaleConfig::initial,
        "what the loss is multiplied with before it is differentiated, a power of two")
      .range(1, 0x1p32);
  s.key("growth", &LossScaleConfig::growth, "factor by which the scale grows, a power of two")
      .range(1, 0x1p16);
  s.key("growth_every", &LossScaleConfig::growth_every,
        "updates in a row, none skipped, after which it grows")
      .at_least(1);
  s.key("backoff", &LossScaleConfig::backoff,
        "factor on the scale where an update is skipped, a power of two below 1")
      .range(0x1p-16, 0.5);
}

void declare_keys(Schema<EvalConfig>& s) {
  s.key("mode", &EvalConfig::mode,
        "disjoint rows, or overlapping windows that give each token nearly full context");
  s.key("sequence_length", &EvalConfig::sequence_length, "tokens of a sequence or window").range(2, 1 << 24);
  s.key("stride", &EvalConfig::stride, "tokens between the starts of sliding windows").range(1, 1 << 24);
  s.key("packed_sequences", &EvalConfig::packed_sequences,
        "sequences packed into one row: a document continues within a row and is cut at its end and every "
        "sequence_length tokens, so that this is part of what is scored; in sliding mode so many windows lie "
        "side by side, which changes a score by rounding at most")
      .range(1, 1 << 20);
  s.key("drop_remainder", &EvalConfig::drop_remainder,
        "leave the last partial batch unscored, only to match figures of the record's script");
  s.key("tokens", &EvalConfig::tokens,
        "score only so many targets, the first of the validation text; 0 = all")
      .at_least(0);
  s.key("shares", &EvalConfig::shares,
        "cut the targets into so many equal shares, each with rows of its own, as "
        "that many ranks of the later records' scripts do; part of what is scored, "
        "whatever the number of ranks; 0 = rows follow one another over the whole text")
      .range(0, 1 << 16);
  s.key("save_seconds", &EvalConfig::save_seconds,
        "seconds between saved states of eval and ttt, which --resume continues; 0: saved only where a "
        "signal stops them")
      .range(0, 1e9);
  s.key("use_ema", &EvalConfig::use_ema, "score the averaged weights where ema.decay > 0");
}

void declare_keys(Schema<LedgerConfig>& s) {
  s.key("rules", &LedgerConfig::rules, "strict refuses a result that breaks a limit, open reports it");
  s.key("train_seconds", &LedgerConfig::train_seconds, "limit of the training phase in seconds; 0 = none")
      .range(0, 1e9);
  s.key("eval_seconds", &LedgerConfig::eval_seconds, "limit of the evaluation phases in seconds; 0 = none")
      .range(0, 1e9);
  s.key("artifact_bytes", &LedgerConfig::artifact_bytes, "limit of model and code in bytes; 0 = none")
      .at_least(0);
}

void declare_keys(Schema<ArenaConfig>& s) {
  s.key("track", &ArenaConfig::track,
        "modded3 = the optimiser benchmark of Modded-NanoGPT: a run with another model, other data, "
        "batches or scores is refused");
}

void declare_keys(Schema<RunConfig>& s) {
  s.section("run", &RunConfig::run);
  s.section("data", &RunConfig::data);
  s.section("model", &RunConfig::model);
  s.section("init", &RunConfig::init);
  s.section("train", &RunConfig::train);
  s.section("parallel", &RunConfig::parallel);
  s.section("ema", &RunConfig::ema);
  s.section("checkpoint", &RunConfig::checkpoint);
  s.section("metrics", &RunConfig::metrics);
  s.section("doctor", &RunConfig::doctor);
  s.section("noise", &RunConfig::noise);
  s.section("loss_scale", &RunConfig::loss_scale);
  s.section("eval", &RunConfig::eval);
  s.section("ledger", &RunConfig::ledger);
  s.section("arena", &RunConfig::arena);
}

}  // namespace mulligan
