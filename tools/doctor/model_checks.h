// Checks of a model on the run's backend: its loss, its weights, its forward pass, its gradients, how it is scored and how
// it is trained.
// docs/doctor.md says what each check fails and warns of.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/check/loss_probe.h"
#include "framework/config/model_config.h"
#include "framework/config/run_config.h"
#include "framework/core/tensor_type.h"
#include "framework/data/loader.h"
#include "framework/model/parameters.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "framework/plugin/plugin_host.h"
#include "framework/step/optimizer_groups.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {

// D09 of initial weights, which were drawn as `parameters` say.
Finding judge_initial_loss(double loss_nats, const ModelConfig& model,
                           const std::vector<ParameterSpec>& parameters);

// D10
Finding judge_trained_loss(double loss_nats, int vocabulary, double floor_nats);

// The least loss that the data allow: 0.3 of the entropy of a token given the one before. 0 for a model that fills in
// masked tokens, which sees both sides.
double loss_floor(const ModelConfig& model, double bigram_nats);

// D11 of logits [prompts * positions, vocabulary]. `initial`: of initial weights, whose output head may be zero.
Finding judge_logits(const std::vector<double>& logits, const ModelConfig& model, bool initial = false);

// D01 of a cross entropy, and of another loss.
Finding judge_uniform_loss(double loss, int vocabulary, DType compute);
Finding judge_other_loss(const LossValues& values);

// D02. `certain_loss`: the distance from what the softcap leaves. `furthest`: how far an element of the gradient at equal
// logits is from softmax minus target, in the worst row.
Finding judge_loss_gradient(double certain_loss, double largest_row_sum, DType compute, double furthest = 0);

// D01 and, of a cross entropy, D02. `backend` knows the loss's kernels; `softcap` is the model's, 0 = none.
std::vector<Finding> check_loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                       DType compute);

// drawn: the initial weights of a run; trained: anything else.
enum class WeightOrigins { drawn, trained };

// D05, D06 and D07. `parameters` says how each begins.
std::vector<Finding> check_weights(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                                   WeightOrigins origin);

// D14: each call of a forward pass against the same call on `reference`, causality, and the output head. The reference's call
// is given what the backend's own earlier calls left.
std::vector<Finding> check_forward(Backend& backend, Backend& reference, const RunConfig& config,
                                   ComputeTypes compute);

// D13. `backend` knows the loss's kernels.
Finding check_gradients(Backend& backend, const Loss& loss, const RunConfig& config);

// D33. Records an update of `groups`, whose states it describes.
Finding check_precision(Backend& backend, DType compute, OptimizerGroups& groups);

// D15
Finding check_neighbours(Backend& backend, const RunConfig& config, ComputeTypes compute);

// D16: memory is filled with numbers that are NaN, then with others. `repeats`: the backend promises repeated bits.
Finding check_memory(EvaluationProbe& probe, bool repeats);
// D16 of a run's own evaluation. `score` gives the summed loss of the same tokens; `disturb` lets training use the memory
// that both share.
Finding check_repeated_score(const std::function<double()>& score, const std::function<void()>& disturb,
                             bool repeats);

// D17. `excess_nats`: the training loss of equal logits less ln V (D01); absent where the training loss is no cross
// entropy.
Finding judge_modes(double training_nats, double evaluation_nats, std::optional<double> excess_nats,
                    DType compute);
// The same of a row that evaluation gave `evaluation_nats`. `backend` knows the loss's kernels.
Finding check_modes(Backend& backend, const Loss& loss, const RunConfig& config, ComputeTypes compute,
                    const Weights& weights, const Batch& row, double evaluation_nats);

// D18
Finding check_order(Backend& backend, EvaluationProbe& probe, bool repeats);

// D28 of an evaluation: its mean over so many tokens, in rows of different lengths, against `losses`, those of all tokens.
Finding check_mean(double mean_nats, std::uint64_t tokens, const std::vector<float>& losses);
// The same of tokens that evaluate() scores here. Takes memory on `backend` for the model and two short rows.
Finding check_evaluated_mean(Backend& backend, const RunConfig& config, const Weights& weights);

// D19. `repeat_share`: how often a token of the corpus equals the one before it.
Finding check_targets(const std::vector<Batch>& rows, double repeat_share);
// D19 of rows whose tokens are hidden.
Finding check_masked_targets(const std::vector<Batch>& rows, const MaskingOptions& masking);

// D31. `planned_spans`: rows that the run will read; 0 where a time budget ends it.
Finding check_end_of_data(const LoaderOptions& options, std::int64_t planned_spans);

// D32
Finding judge_overfit(double first_nats, double last_nats, int steps);

// D30, D32, D34 and D35. `row`: 16 tokens or more.
std::vector<Finding> check_training(const LoadedConfig& loaded, PluginHost& host, const Batch& row);

}  // namespace mulligan::doctor
