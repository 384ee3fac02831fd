// The [train], [train.warmup], [ema], [checkpoint] and [metrics] sections: budget, batch, precision,
// clipping, warm-up, what is saved and reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/words.h"

namespace mulligan {

// The number formats a user may ask for by name: compute dtype of the model (all), master dtype of a
// parameter and dtype of its gradient between ranks (fp32 and bf16).
enum class Precision { fp32, bf16, fp16 };
template <>
inline constexpr auto config_words<Precision> = std::array{"fp32", "bf16", "fp16"};

// How the projections' weights are stored where everything else computes in fp32 (docs/numerics/layercast.md).
enum class LayerCast { off, bf16, fp16 };
template <>
inline constexpr auto config_words<LayerCast> = std::array{"off", "bf16", "fp16"};

// Whether a gradient is clipped on each rank's own gradient before the reduction (what the record's script
// does), on that of each micro-batch before any sum (the same where each rank has one of them, on any number of
// ranks), or on the reduced gradient.
enum class ClipOrder { before_reduction, each_micro_batch, after_reduction };
template <>
inline constexpr auto config_words<ClipOrder> =
    std::array{"before_reduction", "each_micro_batch", "after_reduction"};

// What of a step's token losses is differentiated.
enum class LossReduction { mean, sum };
template <>
inline constexpr auto config_words<LossReduction> = std::array{"mean", "sum"};

// [train.warmup] Steps run before the clock starts, for each layer order the run will use; afterwards
// weights, optimiser state and data position return to their initial values.
struct WarmupConfig {
  int64_t steps = 0;                // per layer order; 0 = no warm-up
  bool keep_muon_momentum = false;  // optimiser states that were declared to survive warm-up do
};

// [ema] Exponential moving average of all weights in fp32, started from the initial weights or from those of a step.
struct EmaConfig {
  double decay = 0.0;                // per step; 0 = off
  double tau = 0.0;                  // another way to say it: decay = 1 - 1 / tau; 0 = as decay says
  int64_t from_step = 0;             // the average begins as the weights after this update
  int64_t until_step = 0;            // the first update that it does not follow; 0 = it follows all
  double blend = 1.0;                // its share in what is scored
  std::vector<std::string> exclude;  // globs: parameters without an average

  // Whether something else than the average of all weights is scored.
  bool partial() const { return from_step > 0 || until_step > 0 || blend < 1 || !exclude.empty(); }
};

// What becomes of the average after update number `update` (from 1): it begins as the weights, follows them, or
// stays as it is.
enum class AverageStep { stays, begins, follows };
inline AverageStep average_step(const EmaConfig& ema, int64_t update) {
  if (update == ema.from_step) return AverageStep::begins;
  const bool follows = update > ema.from_step && (ema.until_step == 0 || update < ema.until_step);
  return follows ? AverageStep::follows : AverageStep::stays;
}

// How ranks share the update. parameters: as each row of [[parameters]] says; ddp: every rank updates
// everything, from gradients summed in fp32 (distributed data parallel), whatever the rows say.
enum class ParallelStrategy { parameters, ddp };
template <>
inline constexpr auto config_words<ParallelStrategy> = std::array{"parameters", "ddp"};

// [parallel]
struct ParallelConfig {
  ParallelStrategy strategy = ParallelStrategy::parameters;
};

// [checkpoint] Complete states of training to continue from. Whichever period ends first asks for one, unless
// one is still being written; a run that is told to stop writes one in any case.
struct CheckpointConfig {
  int64_t every_steps = 0;       // 0 = not by steps
  double every_seconds = 300.0;  // of the training clock; 0 = not by time
  bool at_end = true;            // also after the last step
  int64_t keep = 2;              // newest checkpoints that stay
  std::string directory;         // "" in the file = <run.directory>/checkpoints
};

// [metrics]
struct MetricsConfig {
  bool hf_compat = false;  // also report train_loss_hf: the loss summed since the process started / all steps
  bool energy = false;     // measure the joules that training takes, where the machine counts them
  bool tensorboard = false;     // also write an event file while training, into RUN/tensorboard
  int64_t attention_every = 0;  // steps between looks at attention's rounding (docs/numerics); 0 = none
};

// [train]
struct TrainConfig {
  double budget_seconds = 0.0;   // training clock; 0 = none, then `steps` ends the run
  double reserve_seconds = 0.0;  // kept back from the budget; fraction f = elapsed / (budget - reserve)
  int64_t steps = 0;             // upper limit of optimiser steps; 0 = none, then the budget ends the run
  int64_t tokens_per_step = 0;   // target tokens per optimiser step over all ranks and micro-batches
  // Micro-batches per step over all ranks: each is one packed row of tokens_per_step / micro_batches tokens,
  // and each of W ranks runs micro_batches / W of them one after the other (so W must divide it, and results
  // do not depend on W).
  int64_t micro_batches = 1;
  int64_t micro_batch_parts = 1;   // passes that compute a micro-batch, one after the other
  int64_t sequence_length = 2048;  // longest attention segment in tokens; longer documents are cut
  Precision compute_dtype = Precision::fp32;
  LayerCast layercast =
      LayerCast::off;     // with compute_dtype fp32: in what the projections' weights are stored
  bool fp8_head = false;  // the head's matmuls in training are of numbers of FP8
  LossReduction loss_reduction = LossReduction::mean;
  double clip_norm = 0.0;  // global gradient norm; 0 = off
  ClipOrder clip_order = ClipOrder::after_reduction;
  int64_t log_every = 10;           // steps between progress lines in the log and in metrics.jsonl
  int64_t validate_every = 0;       // steps between validations during training; 0 = only at the end
  std::vector<double> validate_at;  // steps after which to validate, too
  int64_t validations = 0;          // so many during training, at equal shares of its budget; 0 = none
  WarmupConfig warmup;
};

// Tokens of one micro-batch.
inline int64_t tokens_per_micro_batch(const TrainConfig& train) {
  return train.tokens_per_step / train.micro_batches;
}

// The [loss_scale] section: a power of two that the loss is multiplied with before it is differentiated, and
// the gradients are divided by before anything reads them, so that small gradients are not lost in fp16.

enum class LossScaleMode {
  automatic,  // dynamic in phases that compute in fp16, none in others
  off,
  constant,  // `initial`, in all phases; a gradient that is not finite ends the run
  dynamic,   // in all phases; a gradient that is not finite skips the update and lowers the scale
};
template <>
inline constexpr auto config_words<LossScaleMode> = std::array{"auto", "off", "static", "dynamic"};

// [loss_scale]; scale and factors are powers of two: a scale under which nothing overflows changes nothing.
struct LossScaleConfig {
  LossScaleMode mode = LossScaleMode::automatic;
  double initial = 65536.0;
  double growth = 2.0;               // factor on the scale
  std::int64_t growth_every = 2000;  // after so many updates without a skipped one
  double backoff = 0.5;              // factor on the scale where an update is skipped
};

// The [noise] section: noise in the gradients of training, for experiments on what precision does.

// What is done to each element g of a gradient tensor of d elements; xi is standard normal.
enum class NoiseMode {
  off,
  bf16_round,       // g rounded to bf16, to the nearest, ties to even
  bf16_stochastic,  // g rounded to bf16, up or down with the probabilities that keep its mean
  relative,         // g + sigma g xi
  norm,             // g + sigma |g| / sqrt(d) xi, with |g| the norm of the tensor
  anneal,           // g + sqrt(sigma / (1 + t)^0.55) xi, t the updates done (Neelakantan et al. 2015)
};
template <>
inline constexpr auto config_words<NoiseMode> =
    std::array{"off", "bf16_round", "bf16_stochastic", "relative", "norm", "anneal"};

// Whether before the gradient is clipped, so that the clip sees it, or after it; after the reduction.
enum class NoiseOrder { before_clip, after_clip };
template <>
inline constexpr auto config_words<NoiseOrder> = std::array{"before_clip", "after_clip"};

// [noise]
struct NoiseConfig {
  NoiseMode mode = NoiseMode::off;
  double sigma = 0.00166;       // 0 = none; the default is the relative error of rounding to bf16
  double from_fraction = 0.0;   // share of the budget from which on it is added
  double until_fraction = 1.0;  // and up to which, exclusive; 1 = to the end
  NoiseOrder order = NoiseOrder::before_clip;
};

// The [doctor] section.

// What is checked when a run starts: nothing; the checks that take moments; or also those that train and
// compare on the side.
enum class DoctorLevel { off, start, all };
template <>
inline constexpr auto config_words<DoctorLevel> = std::array{"off", "start", "all"};

// [doctor]
struct DoctorConfig {
  DoctorLevel level = DoctorLevel::start;
};

}  // namespace mulligan
