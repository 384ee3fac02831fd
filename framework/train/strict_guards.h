// StrictGuards: under ledger.rules = "strict" the first steps must be steps, and a validation must leave the state of
// training alone: nothing may be learned while the training clock stands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/eval_config.h"
#include "framework/graph/tensor_store.h"
#include "framework/run/parameter_plan.h"
#include "framework/step/optimizer_groups.h"
#include "framework/step/snapshot.h"
#include "framework/step/training_programs.h"

namespace mulligan {

// FirstSteps: whether a run begins by learning, or by taking up weights that were made outside of the training
// clock. What plugins know before the clock starts (states that survive warm-up, memory of their own, files) shows
// as steps that move the weights further than steps do.

// How one step moved the parameters of one optimiser.
struct StepMove {
  double distance = 0;  // root of the sum of squares over all elements
  double lr = 0;
  double gradient_norm = 0;  // before clipping
};

// The first of the steps that are judged which moved further than `longest_move` times what the steps behind them
// did, as the median, both per learning rate and per learning rate and gradient; absent: there is none. Honest
// first steps stay below: Adam's first step is its longest, one learning rate in every element, where later ones
// move a quarter to a sixth of it; of gradient descent distance over learning rate and gradient is constant;
// orthogonalised and sign-like steps have one length.
struct LongMove {
  std::size_t step = 0;  // from 0
  double times = 0;      // the median
};
inline constexpr double longest_move = 12;
std::optional<LongMove> find_long_move(const std::vector<StepMove>& moves, std::size_t judged);

class FirstSteps {
 public:
  // So many steps are judged by as many behind them; of a shorter run its first half by its second.
  static constexpr std::size_t judged = 16;

  // Keeps the weights as they are before the first step. Waits for the device.
  FirstSteps(const TensorStore& store, const std::vector<PlannedParameter>& parameters);
  // Whether there is nothing more to be noted.
  bool complete() const { return steps_ >= 2 * judged; }
  // After a step. `gradient_norms` are by group. Waits for the device.
  void note(const TensorStore& store, const std::vector<OptimizerGroup>& groups,
            const std::vector<double>& gradient_norms);
  // A sentence without full stop about the first step that moved too far; empty: none did.
  std::string finding() const;

 private:
  std::vector<float> weights_of(const TensorStore& store, std::size_t parameter) const;

  const std::vector<PlannedParameter>& parameters_;
  std::vector<std::vector<float>> before_;    // by parameter
  std::vector<std::vector<StepMove>> moves_;  // by group, by step
  std::vector<std::string> groups_;           // their names
  std::size_t steps_ = 0;
};

class StrictGuards {
 public:
  explicit StrictGuards(const LedgerConfig& ledger) : strict_(ledger.rules == LedgerRules::strict) {}

  // Whether the first steps are still to be judged: nothing is saved until then, or a run that goes on from a
  // checkpoint would begin with steps that nobody has seen.
  bool first_steps_open(std::int64_t steps) const { return strict_ && steps <= judged_steps; }
  static constexpr auto judged_steps = static_cast<std::int64_t>(2 * FirstSteps::judged);

  // The first rank of a run that begins at step 0, before its clock runs.
  void begin(const TensorStore& store, const std::vector<PlannedParameter>& parameters) {
    if (strict_) first_steps_.emplace(store, parameters);
  }
  // Whether the step that was made is still to be noted.
  bool notes_steps() const { return first_steps_ && !first_steps_->complete(); }
  // While the clock stands; throws when the last of them is noted and one was none (require_learned_steps).
  void note_step(const TensorStore& store, const std::vector<OptimizerGroup>& groups,
                 const std::vector<double>& gradient_norms);
  // Throws run_error where a first step has moved the weights further than learning does.
  void require_learned_steps() const;

  // Around a validation that training goes on behind.
  std::optional<StateSnapshot> before_validation(TrainingEngine& engine) const;
  static void require_unchanged(const std::optional<StateSnapshot>& state, std::int64_t steps);

 private:
  bool strict_;
  std::optional<FirstSteps> first_steps_;
};

}  // namespace mulligan
