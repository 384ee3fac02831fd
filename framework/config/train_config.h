// The [train], [train.warmup], [parallel], [ema], [checkpoint], [metrics], [loss_scale], [noise] and [doctor] sections.
// core_schema.cpp explains the keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/words.h"
#include "framework/core/tensor_type.h"

namespace mulligan {

// The dtypes a user may ask for by name, in the order of mlg_dtype: compute dtype of the model (all), master dtype
// of a parameter and dtype of its gradient between ranks (fp32 and bf16).
template <>
inline constexpr auto config_words<DType> = std::array{"fp32", "bf16", "fp16"};

// How the projections' weights are stored where everything else computes in fp32 (docs/numerics/layercast.md).
enum class LayerCast { off, bf16, fp16 };
template <>
inline constexpr auto config_words<LayerCast> = std::array{"off", "bf16", "fp16"};

// before_reduction is what the record's script does. each_micro_batch is the same where each rank has one micro-batch.
enum class ClipOrder { before_reduction, each_micro_batch, after_reduction };
template <>
inline constexpr auto config_words<ClipOrder> =
    std::array{"before_reduction", "each_micro_batch", "after_reduction"};

// What of a step's token losses is differentiated.
enum class LossReduction { mean, sum };
template <>
inline constexpr auto config_words<LossReduction> = std::array{"mean", "sum"};

// [train.warmup]
struct WarmupConfig {
  int64_t steps = 0;
  bool keep_muon_momentum = false;
};

// [ema] Exponential moving average of all weights in fp32.
struct EmaConfig {
  double decay = 0.0;
  int64_t from_step = 0;
  int64_t until_step = 0;
  double blend = 1.0;
  std::vector<std::string> exclude;

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

// ddp: distributed data parallel.
enum class ParallelStrategy { parameters, ddp };
template <>
inline constexpr auto config_words<ParallelStrategy> = std::array{"parameters", "ddp"};

// [parallel]
struct ParallelConfig {
  ParallelStrategy strategy = ParallelStrategy::parameters;
};

// [checkpoint] Whichever period ends first asks for a checkpoint, unless one is still being written; a run that is told to
// stop writes one in any case.
struct CheckpointConfig {
  int64_t every_steps = 0;
  double every_seconds = 300.0;
  bool at_end = true;
  int64_t keep = 2;
  std::string directory;
};

// [metrics]
struct MetricsConfig {
  bool hf_compat = false;
  bool energy = false;
  bool tensorboard = false;
  int64_t attention_every = 0;
};

// [train]
struct TrainConfig {
  double budget_seconds = 0.0;   // training clock; 0 = none, then `steps` ends the run
  double reserve_seconds = 0.0;  // kept back from the budget; fraction f = elapsed / (budget - reserve)
  int64_t steps = 0;
  int64_t tokens_per_step = 0;
  // Each is one packed row of tokens_per_step / micro_batches tokens. Each of W ranks runs micro_batches / W of them one after
  // the other, so results do not depend on W.
  int64_t micro_batches = 1;
  int64_t micro_batch_parts = 1;   // passes that compute a micro-batch, one after the other
  int64_t sequence_length = 2048;  // longest attention segment in tokens; longer documents are cut
  DType compute_dtype = MLG_F32;
  LayerCast layercast = LayerCast::off;
  bool fp8_head = false;
  LossReduction loss_reduction = LossReduction::mean;
  double clip_norm = 0.0;
  ClipOrder clip_order = ClipOrder::after_reduction;
  int64_t log_every = 10;
  int64_t validate_every = 0;
  std::vector<double> validate_at;
  int64_t validations = 0;
  WarmupConfig warmup;
};

// Tokens of one micro-batch.
inline int64_t tokens_per_micro_batch(const TrainConfig& train) {
  return train.tokens_per_step / train.micro_batches;
}

enum class LossScaleMode {
  automatic,  // dynamic in phases that compute in fp16, none in others
  off,
  constant,  // `initial`, in all phases; a gradient that is not finite ends the run
  dynamic,   // in all phases; a gradient that is not finite skips the update and lowers the scale
};
template <>
inline constexpr auto config_words<LossScaleMode> = std::array{"auto", "off", "static", "dynamic"};

// [loss_scale] What the loss is multiplied with before it is differentiated, and gradients are divided by before anything
// reads them. Scale and factors are powers of two: a scale under which nothing overflows changes nothing.
struct LossScaleConfig {
  LossScaleMode mode = LossScaleMode::automatic;
  double initial = 65536.0;
  double growth = 2.0;
  std::int64_t growth_every = 2000;
  double backoff = 0.5;
};

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

enum class NoiseOrder { before_clip, after_clip };
template <>
inline constexpr auto config_words<NoiseOrder> = std::array{"before_clip", "after_clip"};

// [noise]
struct NoiseConfig {
  NoiseMode mode = NoiseMode::off;
  double sigma = 0.00166;
  double from_fraction = 0.0;
  double until_fraction = 1.0;
  NoiseOrder order = NoiseOrder::before_clip;
};

enum class DoctorLevel { off, start, all };
template <>
inline constexpr auto config_words<DoctorLevel> = std::array{"off", "start", "all"};

// [doctor]
struct DoctorConfig {
  DoctorLevel level = DoctorLevel::start;
};

}  // namespace mulligan
