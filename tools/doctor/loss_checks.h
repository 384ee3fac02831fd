// Checks of the loss on logits whose loss is known: D01 and D02.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/check/loss_values.h"
#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"
#include "framework/model/parameters.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// What a loss or a model's logits may be before anything is learned, or after: D09 to D11.

// D09, two-sided: of initial weights, which were drawn as `parameters` say. Normal logits of standard deviation s have a
// loss of ln V + s^2/2.
Finding judge_initial_loss(double loss_nats, const ModelConfig& model,
                           const std::vector<ParameterSpec>& parameters);

// D10: of weights that have been trained before; `floor_nats` is what no model can be below (loss_floor).
Finding judge_trained_loss(double loss_nats, int vocabulary, double floor_nats);

// 0.3 of the entropy of a token given the one before: a smaller loss is no achievement but a mistake. 0 for a
// model that fills in masked tokens: those on both sides tell more than the one before.
double loss_floor(const ModelConfig& model, double bigram_nats);

// D11, of logits [prompts * positions, vocabulary]: finite, spread, with a peak, not always the same
// token, not at the softcap.
Finding judge_logits(const std::vector<double>& logits, const ModelConfig& model);
// Whether the matrix that makes logits begins with zeros, and D11 of such initial weights: all logits are 0.
bool begins_with_zero_logits(const ModelConfig& model);
Finding judge_zero_logits(const std::vector<double>& logits);

// D01: the loss of equal logits is ln V nats. A training loss may lie above (with a regulariser), which
// is a warning: then it cannot be compared with a validation loss. Below, or at log2 V, it fails.
Finding judge_uniform_loss(double loss, int vocabulary, DType compute);

// D02: the loss of logits that name the target is almost 0 (`certain_loss`: how far it is from what the
// softcap leaves), and at equal logits the gradient of each row sums to 0.
// `furthest`: how far an element of the gradient at equal logits is from softmax minus target, in the worst row.
Finding judge_loss_gradient(double certain_loss, double largest_row_sum, DType compute, double furthest = 0);

// D01 of a loss that is not a cross entropy in nats: it falls as the target becomes more likely.
Finding judge_other_loss(const LossValues& values);

// What a training loss holds besides the cross entropy, in nats: what the loss of equal logits lies above
// ln V. Nothing of a loss that is not a cross entropy.
std::optional<double> loss_excess(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                  DType compute);

// All that its kind asks for (D02 of cross entropies alone), of a run's loss on its backend, which knows the
// loss's kernels. `softcap` is the model's; 0 = none.
std::vector<Finding> check_loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                       DType compute);

}  // namespace mulligan::doctor
