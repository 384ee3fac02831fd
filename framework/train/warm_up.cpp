#include "framework/train/warm_up.h"

#include "framework/core/stop_request.h"
#include "framework/step/phase_progress.h"

namespace mulligan {

void WarmUp::run(PhaseDevices& devices, TrainingRows& rows, RunRanks& ranks) {
  const LoaderPosition start = rows.stream().position();
  for (const auto& device : devices.devices()) {
    rows.stream().restore(start);
    run(*device, devices, rows, ranks);
  }
}

void WarmUp::run(TrainingDevice& device, PhaseDevices& devices, TrainingRows& rows, RunRanks& ranks) {
  TrainingEngine& engine = device.programs->engine();
  std::vector<std::string> tensors = engine.state_tensors();
  if (config_.train.warmup.keep_muon_momentum) {
    for (const OptimizerGroup& group : device.groups.groups()) {
      for (const std::string& state : group.surviving) std::erase(tensors, state);
    }
  }
  const StateSnapshot initial(engine.store(), tensors);
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

}  // namespace mulligan
