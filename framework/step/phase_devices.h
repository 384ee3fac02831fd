// PhaseDevices: where each phase of a run is trained, and which phase it is now. Phases on one backend share
// their tensors; another backend takes the state of training over as a snapshot.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/plugin/plugin_host.h"
#include "framework/report/metrics_file.h"
#include "framework/step/snapshot.h"
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
  Backend& backend() { return *device().plugins.backend; }

  // Goes to a phase without handing anything over: its state is set from outside, or it shares the backend.
  void start_at(std::size_t phase);
  // Goes to a later phase, all ranks alike and between two steps. A declared one is verified: the state is
  // handed over to its backend, compute copies are made anew from the masters, the canonical image of the
  // state must have one sha256 before and after, and `probe` is scored both ways; with reset_optimizer the
  // optimisers' states are then emptied. `counters` says what belongs to the state and is not a tensor. Throws
  // run_error when the state does not arrive as it left, or the losses lie too far apart.
  std::optional<Handover> enter(std::size_t phase, const Batch& probe,
                                const std::function<std::string()>& counters);

 private:
  TrainingDevice* device_of(std::size_t phase) const { return places_[phase]; }
  Handover hand_over(std::size_t phase, const Batch& probe, const std::function<std::string()>& counters);

  const RunConfig& config_;
  const std::vector<PlannedParameter>& parameters_;
  std::vector<std::unique_ptr<TrainingDevice>> devices_;
  std::vector<TrainingDevice*> places_;  // by phase
  std::size_t phase_ = 0;
};

}  // namespace mulligan
