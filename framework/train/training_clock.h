// TrainingClock: the time of a training run: which phase of the ledger a second belongs to, how much of the training
// budget is spent, and which steps the device has ended.
#pragma once

#include <mulligan/backend.h>

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

// StepPace: what the host may decide while the device lags. A step is decided (its rates, its phase, whether
// it is made at all) only when the one before the last has ended on the device: so the host's clock is the
// device's, to within the one step that is under way, and the device has work while the host prepares more.
class StepPace {
 public:
  static constexpr std::int64_t most_under_way = 1;  // while a step is decided

  // All of a step was enqueued on `backend`, which must outlive the wait for it.
  void made(Backend& backend) {
    backend.mark(slot(made_++));
    backend_ = &backend;
  }
  // Before a step is decided: waits until most_under_way are left. Returns the steps that ended since the
  // last call.
  std::int64_t wait() {
    if (under_way() <= most_under_way) return 0;
    backend_->await(slot(made_ - 1 - most_under_way));
    return ended(made_ - most_under_way);
  }
  // The same until none is left: while it is not known how long a step takes.
  std::int64_t wait_for_all() {
    if (under_way() > 0) backend_->await(slot(made_ - 1));
    return all_ended();
  }
  // Somebody has waited for the device: all have ended. As wait().
  std::int64_t all_ended() { return ended(made_); }

  std::int64_t under_way() const { return made_ - ended_; }

 private:
  static std::uint32_t slot(std::int64_t step) { return static_cast<std::uint32_t>(step % MLG_MARKS); }
  static_assert(most_under_way + 1 < MLG_MARKS, "a mark must not be made anew before it was waited for");
  std::int64_t ended(std::int64_t steps) {
    const std::int64_t more = steps - ended_;
    ended_ = steps;
    return more;
  }

  Backend* backend_ = nullptr;
  std::int64_t made_ = 0, ended_ = 0;
};

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

  // All of a step was given to the device.
  void step_made(Backend& backend) { pace_.made(backend); }
  // Waits until the device has ended all steps but the last (StepPace); and for the first, which says how long one takes.
  void await_pace() { book(budget_.step_seconds() > 0 ? pace_.wait() : pace_.wait_for_all()); }
  // Somebody has waited for the device.
  void all_ended() { book(pace_.all_ended()); }

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
  void book(std::int64_t steps_ended);

  Ledger ledger_;
  Budget budget_;
  std::optional<StepSeconds> counted_;
  StepPace pace_;
  double slowest_step_seconds_ = 0;
};

}  // namespace mulligan
