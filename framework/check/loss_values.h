// A loss on logits with a known cross entropy: equal logits, and logits that name the target.
#pragma once

#include <string>

#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"

namespace mulligan {

struct LossValues {
  double equal = 0;    // mean loss of equal logits; of a cross entropy in nats: ln V
  double certain = 0;  // largest loss of logits that name the target; of a cross entropy: `softcap_leaves`
  double softcap_leaves =
      0;  // the cross entropy that a softcap leaves if the logits are as far apart as possible
  double largest_row_sum = 0;  // of the gradient of equal logits; of a cross entropy 0
  double furthest = 0;         // largest distance of an element of that gradient from softmax minus target
};

// `softcap` is the model's; 0 = none. The backend knows the loss's kernels.
LossValues loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap, DType compute);

// Tolerance, in nats, by which rounding may put the loss of equal logits below ln V.
double uniform_slack(int vocabulary, DType compute);
// Whether a loss of equal logits is log2 V: a cross entropy in bits.
bool is_in_bits(double equal, int vocabulary);

// The reason why a loss contradicts its declaration; empty: no contradiction. A declared cross entropy in nats must be one. Any other
// loss must fall as the target becomes more likely.
std::string loss_value_problem(const LossValues& values, bool is_cross_entropy, int vocabulary,
                               DType compute);

}  // namespace mulligan
