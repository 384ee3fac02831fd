// PhaseDevices: where each phase of a run is trained, and which phase it is now. Phases on one backend share
// their tensors; another backend takes the state of training over as a snapshot.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/plugin/plugin_host.h"
#include "framework/step/training_programs.h"

namespace mulligan {

// One backend of a run with all that it trains with.
struct TrainingDevice {
  std::string section;  // of its backend: "backend", or "phase.2.backend"
  RunPlugins plugins;
  OptimizerGroups groups;
  std::unique_ptr<Communicator> communicator;  // after PhaseDevices::compile
  std::unique_ptr<TrainingPrograms> programs;  // after PhaseDevices::compile
};

// What came with a change of the backend.
struct Handover {
  std::string state_sha256;     // of the state of training, the same on both sides
  double loss_before_nats = 0;  // of one row, by the phase before on its backend
  double loss_after_nats = 0;   // of the same row, by the phase that begins
};

// Makes the communicator of a backend: all ranks in the same order.
using MakeCommunicator = std::function<std::unique_ptr<Communicator>(Backend&)>;

class PhaseDevices {
 public:
  // Makes plugins and optimiser groups of every backend that a phase runs on. All references must outlive
  // this object. Throws Error.
  PhaseDevices(const LoadedConfig& loaded, PluginHost& host, const std::vector<PlannedParameter>& parameters);

  // Makes a communicator for each device and prepares its programs (TrainingPrograms); takes no memory but
  // the tensors'.
  void compile(const MakeCommunicator& make_communicator, std::optional<int> validation_bos_id);
  // Takes the memory and gives every engine its initial weights.
  void initialise();

  const std::vector<std::unique_ptr<TrainingDevice>>& devices() const { return devices_; }
  std::size_t index() const { return phase_; }
  const Phase& phase() const { return config_.phases[phase_]; }
  TrainingDevice& device() { return *device_of(phase_); }
  TrainingEngine& engine() { return device().programs->engine(); }
  OptimizerGroups& groups() { return device().groups; }
  Backend& backend() { return *device().plugins.backend; }

  // Goes to a phase without handing anything over: its state is set from outside, or it shares the backend.
  void start_at(std::size_t phase);
  // Goes to a later phase. Where that is on another backend, the state is handed over and `probe` is scored
  // on both. Throws run_error when the state does not arrive as it left.
  std::optional<Handover> enter(std::size_t phase, const Batch& probe);
  // Whether that phase is on another backend than the present one.
  bool changes_backend(std::size_t phase) const { return device_of(phase) != device_of(phase_); }

 private:
  TrainingDevice* device_of(std::size_t phase) const { return places_[phase]; }

  const RunConfig& config_;
  const std::vector<PlannedParameter>& parameters_;
  std::vector<std::unique_ptr<TrainingDevice>> devices_;
  std::vector<TrainingDevice*> places_;  // by phase
  std::size_t phase_ = 0;
};

}  // namespace mulligan
