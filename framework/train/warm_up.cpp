#include "framework/train/warm_up.h"

#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/plugin/build_plugins.h"
#include "framework/step/phase_progress.h"

namespace mulligan {

void WarmUp::run(PhaseDevices& devices, TrainingRows& rows, RunRanks& ranks, RunLog& log) {
  const LoaderPosition start = rows.stream().position();
  for (const auto& device : devices.devices()) {
    rows.stream().restore(start);
    run(*device, devices, rows, ranks, log);
  }
}

void WarmUp::run(TrainingDevice& device, PhaseDevices& devices, TrainingRows& rows, RunRanks& ranks,
                 RunLog& log) {
  TrainingEngine& engine = device.programs->engine();
  std::vector<std::string> tensors = engine.state_tensors();
  if (config_.train.warmup.keep_muon_momentum) {
    for (const OptimizerGroup& group : device.groups.groups()) {
      for (const std::string& state : surviving_states(group, log)) std::erase(tensors, state);
    }
  }
  const StateSnapshot& initial =
      *before_.emplace_back(std::make_unique<StateSnapshot>(engine.store(), tensors));
  device.groups.set_rates(run_progress(config_, 0, 0, rows.epochs()));
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    if (!engine.plan().has(phase)) continue;
    devices.start_at(phase);
    rows.read_as(config_.phases[phase]);
    for (std::int64_t number = 1; number <= steps() && !ranks.group().any(stop_signal() != 0); ++number) {
      engine.step(number, rows.stream());
    }
  }
  initial.restore();
}

// The states that warm-up leaves as it made them. What a plugin says of its own state is believed under strict
// rules where its code is the tree's: a copy of the weights would survive as well as a momentum.
std::vector<std::string> WarmUp::surviving_states(const OptimizerGroup& group, RunLog& log) const {
  const bool strict = config_.ledger.rules == LedgerRules::strict;
  if (group.surviving.empty() || !strict || !is_foreign(group.optimizer->plugin().path()))
    return group.surviving;
  log.print(
      "note: [optimizer.{}]: its states do not survive warm-up, for under ledger.rules = \"strict\" those of "
      "plugins that the program was not built with never do",
      group.name);
  return {};
}

void WarmUp::require_undone() {
  for (const auto& before : before_) {
    if (const auto changed = before->first_difference()) {
      throw run_error(
          "after the warm-up '{}' is not what it was before, although it was restored: something writes to "
          "it between steps; find the plugin that does, or set train.warmup.steps = 0.",
          *changed);
    }
  }
  before_.clear();
}

}  // namespace mulligan
