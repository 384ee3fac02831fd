// StepPace: what the host may decide while the device lags. A step is decided (its rates, its phase, whether
// it is made at all) only when the one before the last has ended on the device: so the host's clock is the
// device's, to within the one step that is under way, and the device has work while the host prepares more.
#pragma once

#include <mulligan/backend.h>

#include <cstdint>

#include "framework/plugin/backend.h"

namespace mulligan {

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

}  // namespace mulligan
