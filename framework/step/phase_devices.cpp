#include "framework/step/phase_devices.h"

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/sha256.h"

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

// How far two phases' losses of one row may lie apart by their precision: 1e-4 nats where both compute in
// fp32, otherwise 2e-2; absent where they compute different things.
static std::optional<double> probe_tolerance_nats(const Phase& before, const Phase& after) {
  if (before.layer_order != after.layer_order) return {};
  const bool fp32 = before.compute_dtype == MLG_F32 && after.compute_dtype == MLG_F32;
  return fp32 && before.layercast == after.layercast ? 1e-4 : 2e-2;
}

std::optional<Handover> PhaseDevices::enter(std::size_t phase, const Batch& probe,
                                            const std::function<std::string()>& counters) {
  const Phase& coming = config_.phases[phase];
  if (!coming.declared) {
    start_at(phase);
    return {};
  }
  const std::size_t before = phase_;
  try {
    Handover handover = hand_over(phase, probe, counters);
    if (coming.reset_optimizer) {
      engine().reset_optimizers();
      engine().refresh_copies();  // of masters that went back to rest
    }
    return handover;
  } catch (...) {
    // What is saved now must be the state that left the other device.
    if (device_of(before) != device_of(phase)) phase_ = before;
    throw;
  }
}

Handover PhaseDevices::hand_over(std::size_t phase, const Batch& probe,
                                 const std::function<std::string()>& counters) {
  const auto digest = [&] { return state_digest(engine().store(), engine().gather_state(true), counters()); };
  Handover handover;
  handover.tolerance_nats = probe_tolerance_nats(this->phase(), config_.phases[phase]);
  engine().refresh_evaluation_weights();
  handover.loss_before_nats = engine().probe_loss(probe);
  handover.state_sha256 = digest();
  if (device_of(phase) != device_of(phase_)) {
    const StateSnapshot state(engine().store(), engine().state_tensors());
    state.restore_to(device_of(phase)->programs->engine().store());
  }
  start_at(phase);
  if (const std::string arrived = digest(); arrived != handover.state_sha256) {
    throw run_error(
        "the state of training did not arrive in phase '{}', on {}, as it left: its sha256 is {} there and was {}; the "
        "last checkpoint is sound, and resuming from it with one backend is the way on.",
        this->phase().name, backend().info().description, short_digest(arrived),
        short_digest(handover.state_sha256));
  }
  handover.loss_after_nats = engine().probe_loss(probe);
  const double apart = std::abs(handover.loss_after_nats - handover.loss_before_nats);
  if (handover.tolerance_nats && !(apart <= *handover.tolerance_nats)) {
    throw run_error(
        "phase '{}' does not compute what the phase before it does: the loss of one row is "
        "{:.6f} nats in it and was {:.6f}, {:.2g} apart where precision explains {:.2g}; "
        "compare the two backends with 'mulligan doctor', or train on with one of them.",
        this->phase().name, handover.loss_after_nats, handover.loss_before_nats, apart,
        *handover.tolerance_nats);
  }
  return handover;
}

}  // namespace mulligan
