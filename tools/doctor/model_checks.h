// Checks of a model on the run's backend: its weights, its forward pass, its gradients, and how it is scored.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/config/run_config.h"
#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "framework/step/optimizer_groups.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {

// Checks of a model's weights as numbers: D05 to D07.

// drawn: the initial weights of a run; trained: anything else.
enum class WeightOrigins { drawn, trained };

// Of the elements that are not zero (of large tensors some at even distances): the standard deviation of
// log2|x| and the median of |x|. About 1.6 for any normal distribution whatever its scale; 0.2 for bf16
// numbers that were read as f16, 12.7 the other way round.
struct MagnitudeSpread {
  std::size_t count = 0;  // elements that were looked at
  double log2_std = 0, median = 0;
};
MagnitudeSpread magnitude_spread(const std::vector<float>& values);

// D05, of matrices of 4,096 elements or more. D06: not finite, constant, all zero. D07: mean and spread
// of embedding and norms. `parameters` says how each begins.
Finding check_magnitudes(const std::vector<ParameterSpec>& parameters, const Weights& weights);
Finding check_values(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                     WeightOrigins origin);
Finding check_bands(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                    WeightOrigins origin);

std::vector<Finding> check_weights(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                                   WeightOrigins origin);

// Checks of the forward pass on the run's backend, with weights of which none is zero: D14.

// Every call of a forward pass against its formula (formulas.h), given what the backend's own calls
// before it left: the first call that is off is named by its tap. A number may be off by 2e-5 of the
// result's rms and of itself in f32, by 2e-2 and 2^-7 in bf16.
Finding check_formulas(Backend& backend, const RunConfig& config, ComputeTypes compute);

// Positions do not see those after them, nor other segments: the tokens of the second half are changed,
// and no logit of the first may change a bit; where one does, the first tap whose rows moved is named.
Finding check_causality(Backend& backend, const RunConfig& config, ComputeTypes compute);

// The row of the output head that belongs to a token moves that token's logit alone.
Finding check_head(Backend& backend, const RunConfig& config, ComputeTypes compute);

// All of these.
std::vector<Finding> check_forward(Backend& backend, const RunConfig& config, ComputeTypes compute);

// D13: gradients against differences of losses.

// In f32, on a short row and weights of which none is zero: along the gradient of each parameter, and
// along that of half of its elements, the loss must change as the gradient says, within 1 %. `backend`
// knows the loss's kernels.
Finding check_gradients(Backend& backend, const Loss& loss, const RunConfig& config);

// D33: the precision that a backend computes in, measured, and what a run keeps in which dtype.

// Products of numbers that fp32 holds exactly and TF32 or bf16 do not, and a sum that a bf16 or fp16
// accumulator loses. With a 16-bit compute dtype the inputs are rounded to it, and the sum must still be one
// in fp32. `kept` (kept_text) goes into what was measured.
Finding check_precision(Backend& backend, DType compute, const std::string& kept);

// In which dtypes a run keeps masters and optimiser states, and sends gradients between ranks:
// "masters: 9 in f32; optimizer matrices: momentum_buffer 9 in bf16; ...". `groups` are the run's, of which
// an update is recorded.
std::string kept_text(const RunConfig& config, OptimizerGroups& groups);

// Checks of how a model is scored: D15 to D18, and the mean of D28.

// D15: the losses of a segment do not depend on what stands next to it in the row, nor on where it stands.
Finding check_neighbours(Backend& backend, const RunConfig& config, ComputeTypes compute);

// D16: token losses do not depend on what memory held before: it is filled with numbers that are none,
// then with others, and every bit must be the same, or, where the backend does not promise repeated bits
// (`repeats`), within 1e-6.
Finding check_memory(EvaluationProbe& probe, bool repeats);

// D16, of a run's own evaluation: `score` gives the summed loss of the same tokens, `disturb` lets
// training use the memory that both share.
Finding check_repeated_score(const std::function<double()>& score, const std::function<void()>& disturb,
                             bool repeats);

// D17: training and evaluation give the same row the same loss. `excess_nats`: what the training loss of
// equal logits lies above ln V (a regulariser, D01); then the two are not the same number, and this is a
// warning. Nothing: the training loss is not a cross entropy, and the two are not compared.
Finding judge_modes(double training_nats, double evaluation_nats, std::optional<double> excess_nats,
                    DType compute);

// D18: waiting after every call changes no bit, and a call that cannot be is refused.
Finding check_order(Backend& backend, EvaluationProbe& probe, bool repeats);

// D28, of an evaluation: the mean is that over tokens. `scored` is what an evaluation of rows of
// different lengths says, `losses` the losses of all its tokens.
struct ScoredMean {
  double mean_nats = 0;
  std::uint64_t tokens = 0;
};
Finding check_mean(const ScoredMean& scored, const std::vector<float>& losses);

// What a run's own evaluation says of rows of different lengths: D28.

// Scores some drawn tokens, of which the last row is short, by evaluate(), and holds its mean against
// the losses of all tokens. Takes memory on `backend` for the model and two short rows.
Finding check_evaluated_mean(Backend& backend, const RunConfig& config, const Weights& weights);

}  // namespace mulligan::doctor
