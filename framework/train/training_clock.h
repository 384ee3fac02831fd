// TrainingClock: the time of a training run: which phase of the ledger a second belongs to, how much of the training
// budget is spent, and which steps the device has ended.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/checkpoint/manifest.h"
#include "framework/config/run_config.h"
#include "framework/plugin/backend.h"
#include "framework/ranks/host_group.h"
#include "framework/run/ledger.h"
#include "framework/step/phase_progress.h"

namespace mulligan {

// What all ranks do next: the first rank decides, and any rank may ask for a stop.
struct Decision {
  double budget_fraction = 0;
  double elapsed_seconds = 0;  // of the training clock, when the coming step begins on the device
  bool end = false;            // the budget is spent
  bool checkpoint = false;     // one is due
  int stop_signal = 0;         // that some rank was sent
};

// Collective: the first rank's decision, with the signal of the first rank that was sent one.
Decision agree_on(Decision decision, HostGroup& group);

class TrainingClock {
 public:
  // `budget` times the training budget; empty: the process's own clock. The ledger begins with "setup". Where the
  // phases say what their steps count as, the number of steps says how much of the budget is spent; the clock then
  // tells how long they took, and no more.
  TrainingClock(const RunConfig& config, SecondsClock budget);

  Ledger& ledger() { return ledger_; }
  // The training clock runs while steps are made, and stands while anything else is done.
  void run() { budget_.resume(); }
  void stop() { budget_.pause(); }

  // All of a step was given to the device `backend`, which must outlive the wait for it.
  void step_made(Backend& backend);
  // What the host may decide while the device lags: a step (its rates, its phase, whether it is made at all) only when the one before the
  // last has ended on the device. So the host's clock is the device's, to within the one step that is under way, and the device has work
  // while the host prepares more. Waits for that; and for the first step, which says how long one takes.
  void await_pace();
  // Somebody has waited for the device.
  void all_ended() { book(made_); }

  // When the coming step begins on the device, and whether the budget has room for it; the rest is left alone.
  void look_ahead(Decision& decision, std::int64_t steps_made);
  double elapsed_seconds() const { return budget_.elapsed_seconds(); }
  double fraction(std::int64_t steps_made) {
    return counted_ ? counted_->fraction(steps_made) : budget_.fraction(steps_made);
  }
  // At the present pace; negative where that is not known yet.
  double remaining_seconds(std::int64_t steps_made) const;
  double take_slowest_step_seconds();  // since the last call

  void save_to(CheckpointProgress& progress) const;
  void restore(const CheckpointProgress& progress);

 private:
  void book(std::int64_t steps_ended);  // so many in all

  Ledger ledger_;
  Budget budget_;
  std::optional<StepSeconds> counted_;
  Backend* backend_ = nullptr;  // of the last step
  std::int64_t made_ = 0, ended_ = 0;
  double slowest_step_seconds_ = 0;
};

}  // namespace mulligan
