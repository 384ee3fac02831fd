// Checks of the loss on logits whose loss is known: D01 and D02.
#pragma once

#include <optional>
#include <vector>

#include "framework/check/loss_values.h"
#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D01: the loss of equal logits is ln V nats. A training loss may lie above (with a regulariser), which
// is a warning: then it cannot be compared with a validation loss. Below, or where it is log2 V, it
// fails.
Finding judge_uniform_loss(double loss, int vocabulary, DType compute);

// D02: the loss of logits that name the target is almost 0 (`certain_loss`: how far it is from what the
// softcap leaves), and at equal logits the gradient of each row sums to 0.
// `furthest`: how far an element of the gradient at equal logits is from softmax minus target, in the worst row.
Finding judge_loss_gradient(double certain_loss, double largest_row_sum, DType compute, double furthest = 0);

// D01 of a loss that is no cross entropy in nats: it falls as the target becomes more likely.
Finding judge_other_loss(const LossValues& values);

// What a training loss holds besides the cross entropy, in nats: what the loss of equal logits lies above
// ln V. Nothing of a loss that is no cross entropy.
std::optional<double> loss_excess(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                  DType compute);

// All that its kind asks for (D02 of cross entropies alone), of a run's loss on its backend, which knows the
// loss's kernels. `softcap` is the model's; 0 = none.
std::vector<Finding> check_loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                       DType compute);

}  // namespace mulligan::doctor
