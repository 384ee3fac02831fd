// PhaseFollower: the phase that a run is in, the rates of its coming step, and the counts that go with both: what of
// the state of training is not a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/checkpoint/manifest.h"
#include "framework/config/run_config.h"
#include "framework/step/loss_scaler.h"
#include "framework/step/phase_devices.h"
#include "framework/step/phase_progress.h"
#include "framework/train/run_outputs.h"
#include "framework/train/training_clock.h"
#include "framework/train/training_rows.h"

namespace mulligan {

// How far training has come.
struct Trained {
  std::int64_t steps = 0;   // updates done
  std::int64_t tokens = 0;  // trained on, over all ranks
};

class PhaseFollower {
 public:
  // All must outlive this object.
  PhaseFollower(const RunConfig& config, PhaseDevices& devices, TrainingRows& rows, RunOutputs& outputs);

  const Phase& phase() const { return devices_.phase(); }
  TrainingDevice& device() const { return devices_.device(); }
  TrainingEngine& engine() const { return devices_.engine(); }  // once the devices are prepared
  // The device has finished a step when the call returns.
  bool waits_for_steps() const;

  // Goes to a phase whose state is set from outside: at the start, and to resume.
  void start_at(std::size_t phase);
  // The phase of the coming step where it is not the present one.
  std::optional<std::size_t> coming_phase(const Decision& now, const Trained& so_far) const;
  // Between two steps, all ranks alike. The losses of the steps before must have been collected.
  void begin(std::size_t phase, const Decision& now, const Trained& so_far, int world_size);
  void announce_phase(double budget_fraction, std::int64_t steps);
  // Sets rates and noise of the coming step, and tells warm restarts.
  void follow_schedules(const Decision& now, const Trained& so_far);
  // One step on the coming rows. False where it was left out, because its scaled gradient was not finite.
  bool make_step(std::int64_t steps_before);

  // The report's share of phase, rates and norms. Waits for the device.
  void add_to(StepRecord& record) const;
  std::string loss_scale_text() const;  // "" in a phase whose loss is not scaled
  double lr_factor() const;             // of the first optimiser's rate over its base rate

  void save_to(CheckpointProgress& progress) const;
  void restore(const CheckpointProgress& progress);

 private:
  void set_rates(const Decision& now, std::int64_t steps);
  void skip_batches(std::int64_t steps, int world_size);
  std::vector<std::pair<std::string, double>> rates() const;
  std::string counters(const Trained& so_far) const;

  const RunConfig& config_;
  PhaseDevices& devices_;
  TrainingRows& rows_;
  RunOutputs& outputs_;
  PhaseStart start_;
  LrRewarmup rewarm_;                 // of the last phase that has one
  std::vector<std::int64_t> cycles_;  // of the groups' schedules
  // Steps made when the optimisers' states were emptied last, and those since then that made no update: the
  // optimisers count updates, for their bias corrections.
  std::int64_t optimizer_start_ = 0;
  LossScaler loss_scaler_;
};

}  // namespace mulligan
