// A loss plugin's forward and backward on inputs that a check chooses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/check/kind_checks.h"
#include "framework/check/poisoned_run.h"
#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"

namespace mulligan {

struct LossShape {
  std::int64_t tokens = 0, vocabulary = 0, width = 0;  // width: of the hidden state
  DType dtype = MLG_F32;                               // of logits and hidden state
  double softcap = 0;                                  // for a loss that applies it
};

struct LossInputs {
  std::vector<float> logits, hidden, upstream;
  std::vector<std::int32_t> targets;
};
// Repeatable inputs; the third target (of shapes with more than two tokens) is negative.
LossInputs sample_loss_inputs(const LossShape& shape);

struct LossOutputs {
  std::vector<float> token_loss, logits_gradient,
      hidden_gradient;  // the last empty where the loss reads none
  NamedResults named() const {
    return {{"token_loss", token_loss},
            {"logits_gradient", logits_gradient},
            {"the hidden state's gradient", hidden_gradient}};
  }
};

// The way in which a loss records its two passes.
enum class LossPasses { apart, in_one };

class LossProbe {
 public:
  // With `in_place` the gradient takes the memory of the logits, as in training. `backend` knows the loss's kernels. Use
  // LossPasses::in_one only for a loss that has_forward_backward().
  LossProbe(Backend& backend, const Loss& loss, const LossShape& shape, bool in_place,
            LossPasses passes = LossPasses::apart);

  void set(const LossInputs& inputs);
  LossOutputs run(std::uint8_t poison = poison_zero);
  PoisonedRun& memory() { return run_; }

 private:
  Graph record(const Loss& loss, const LossShape& shape, LossPasses passes);
  bool in_place_, reads_hidden_;
  std::vector<std::string> states_;  // filled by record(), which run_ is made from
  PoisonedRun run_;
};

// Checks that every output is written and depends on the inputs only. Returns a problem, or empty.
std::string loss_outputs_problem(Backend& backend, const Loss& loss, const LossShape& shape,
                                 LossPasses passes = LossPasses::apart);

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
