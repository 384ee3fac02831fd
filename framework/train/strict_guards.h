// StrictGuards: under ledger.rules = "strict" the first steps must be steps, and a validation must leave the state of
// training alone: nothing may be learned while the training clock stands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/config/eval_config.h"
#include "framework/step/snapshot.h"
#include "framework/step/training_programs.h"
#include "framework/train/first_steps.h"

namespace mulligan {

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
