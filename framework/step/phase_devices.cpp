#include "framework/step/phase_devices.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/step/snapshot.h"

namespace mulligan {

PhaseDevices::PhaseDevices(const LoadedConfig& loaded, PluginHost& host,
                           const std::vector<PlannedParameter>& parameters)
    : config_(loaded.config), parameters_(parameters) {
  for (const Phase& phase : config_.phases) {
    const std::string section = backend_section(phase);
    const auto made =
        std::ranges::find_if(devices_, [&](const auto& device) { return device->section == section; });
    if (made == devices_.end()) {
      RunPlugins plugins = make_phase_plugins(loaded, host, section);
      OptimizerGroups groups(config_, plugins, parameters_);
      devices_.push_back(
          std::make_unique<TrainingDevice>(section, std::move(plugins), std::move(groups), nullptr, nullptr));
      places_.push_back(devices_.back().get());
    } else {
      places_.push_back(made->get());
    }
  }
}

void PhaseDevices::compile(const MakeCommunicator& make_communicator, std::optional<int> validation_bos_id) {
  for (const auto& device : devices_) {
    device->communicator = make_communicator(*device->plugins.backend);
    device->programs =
        std::make_unique<TrainingPrograms>(config_, device->section, device->plugins, parameters_,
                                           device->groups, *device->communicator, validation_bos_id);
  }
}

void PhaseDevices::initialise() {
  for (const auto& device : devices_) {
    device->programs->bind();
    device->programs->engine().initialise(static_cast<std::uint64_t>(config_.run.seed));
  }
}

void PhaseDevices::start_at(std::size_t phase) {
  phase_ = phase;
  engine().enter(phase);
}

std::optional<Handover> PhaseDevices::enter(std::size_t phase, const Batch& probe) {
  if (!changes_backend(phase)) {
    start_at(phase);
    return {};
  }
  TrainingEngine& before = engine();
  Handover handover;
  before.refresh_evaluation_weights();
  const std::vector<std::string> names = before.state_tensors();
  handover.loss_before_nats = before.probe_loss(probe);
  handover.state_sha256 = state_digest(before.store(), names);
  const StateSnapshot state(before.store(), names);
  state.restore_to(device_of(phase)->programs->engine().store());
  start_at(phase);
  const std::string arrived = state_digest(engine().store(), engine().state_tensors());
  if (arrived != handover.state_sha256) {
    throw run_error(
        "the state of training did not arrive on {} as it left: its sha256 is {} there and was {}; the last "
        "checkpoint is sound, and resuming from it with one backend is the way on.",
        backend().info().description, short_digest(arrived), short_digest(handover.state_sha256));
  }
  handover.loss_after_nats = engine().probe_loss(probe);
  return handover;
}

}  // namespace mulligan
