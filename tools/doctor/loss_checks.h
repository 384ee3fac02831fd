// Checks of the loss on logits whose loss is known, and of a model's first loss and logits: D01, D02, D09 to D11.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/check/loss_probe.h"
#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"
#include "framework/model/parameters.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "tools/doctor/finding.h"

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

}  // namespace mulligan::doctor
