#include "framework/train/strict_guards.h"

#include <string>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {

void StrictGuards::note_step(const TensorStore& store, const std::vector<OptimizerGroup>& groups,
                             const std::vector<double>& gradient_norms) {
  first_steps_->note(store, groups, gradient_norms);
  if (first_steps_->complete()) require_learned_steps();
}

void StrictGuards::require_learned_steps() const {
  const std::string finding = first_steps_ ? first_steps_->finding() : "";
  if (finding.empty()) return;
  throw run_error("{}; under ledger.rules = \"strict\" the run is refused as a record.", finding);
}

std::optional<StateSnapshot> StrictGuards::before_validation(TrainingEngine& engine) const {
  if (!strict_) return {};
  std::vector<std::string> tensors = engine.state_tensors();
  std::erase_if(tensors, [](const std::string& name) { return name.starts_with("evaluation/"); });
  return std::optional<StateSnapshot>(std::in_place, engine.store(), std::move(tensors));
}

void StrictGuards::require_unchanged(const std::optional<StateSnapshot>& state, std::int64_t steps) {
  const auto changed = state ? state->first_difference() : std::nullopt;
  if (!changed) return;
  throw run_error(
      "the validation at step {} has changed '{}', while the training clock stood; under ledger.rules = "
      "\"strict\" the run is refused as a record.",
      steps, *changed);
}

}  // namespace mulligan
