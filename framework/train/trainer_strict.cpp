// Trainer: nothing may be learned while the training clock stands. What warm-up did is undone to the bit; under
// strict rules the first steps must be steps, and a validation must leave the state of training alone.
#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/plugin/build_plugins.h"
#include "framework/train/trainer.h"

namespace mulligan {

// The states that warm-up leaves as it made them. What a plugin says of its own state is believed under strict
// rules where its code is the tree's: a copy of the weights would survive as well as a momentum.
std::vector<std::string> Trainer::surviving_states(const OptimizerGroup& group) {
  if (group.surviving.empty() || !strict() || !is_foreign(group.optimizer->plugin().path()))
    return group.surviving;
  log_.print(
      "note: [optimizer.{}]: its states do not survive warm-up, for under ledger.rules = \"strict\" those of "
      "plugins that the program was not built with never do",
      group.name);
  return {};
}

void Trainer::require_warm_up_undone() {
  for (const auto& before : before_warm_up_) {
    if (const auto changed = before->first_difference()) {
      throw run_error(
          "after the warm-up '{}' is not what it was before, although it was restored: something "
          "writes to it between steps; find the plugin that does, or set train.warmup.steps = 0.",
          *changed);
    }
  }
  before_warm_up_.clear();
}

void Trainer::begin_first_steps() {
  if (strict() && step_ == 0 && ranks_.first()) first_steps_.emplace(engine_->store(), parameters_);
}

// While the clock stands, once the step is done.
void Trainer::note_first_step() {
  if (!first_steps_ || first_steps_->complete()) return;
  const std::vector<double> norms = engine_->group_gradient_norms();
  stop_clock();
  const std::string before = ledger_.enter("doctor");
  first_steps_->note(engine_->store(), device_->groups.groups(), norms);
  if (first_steps_->complete()) require_learned_steps();
  ledger_.enter(before);
  run_clock();
}

void Trainer::require_learned_steps() const {
  const std::string finding = first_steps_ ? first_steps_->finding() : "";
  if (finding.empty()) return;
  throw run_error("{}; under ledger.rules = \"strict\" the run is refused as a record.", finding);
}

// What was read is what was looked at: the files that the loader opened are those whose digests and overlap were
// taken, and nobody has written to them since. A time of change cannot be set back.
void Trainer::require_read_files() const {
  if (!strict() || !rows_) return;
  const std::vector<FileStamp> opened = rows_->loader().stamps();
  for (std::size_t i = 0; i < data_.shards.size(); ++i) {
    if (opened[i] == data_.stamps[i] && InputFile(data_.shards[i]).stamp() == data_.stamps[i]) continue;
    throw run_error(
        "the training shard '{}' was written to or replaced while the run was reading it, so nothing "
        "says what it has learned from; under ledger.rules = \"strict\" the run is refused as a record.",
        data_.shards[i].string());
  }
}

std::optional<StateSnapshot> Trainer::state_before_validation() {
  if (!strict()) return {};
  std::vector<std::string> tensors = engine_->state_tensors();
  std::erase_if(tensors, [](const std::string& name) { return name.starts_with("evaluation/"); });
  return std::optional<StateSnapshot>(std::in_place, engine_->store(), std::move(tensors));
}

void Trainer::require_unchanged(const std::optional<StateSnapshot>& state) const {
  const auto changed = state ? state->first_difference() : std::nullopt;
  if (!changed) return;
  throw run_error(
      "the validation at step {} has changed '{}', while the training clock stood; under ledger.rules = "
      "\"strict\" the run is refused as a record.",
      step_, *changed);
}

}  // namespace mulligan
