// The two processes of `mulligan launch`.
//
// The one that the user started, the guard, only waits; the other, the supervisor, starts the ranks and
// watches them. Each ends all ranks when the other is no more, so that not even SIGKILL leaves an orphan.
#pragma once

#include <functional>

#include "launch/launcher/outcome.h"

namespace mulligan {

// Ending every process that comes from this one.

// From now on processes whose parent ends become children of this one, so that kill_descendants() finds them.
// Throws run_error when the system refuses.
void adopt_orphans();

// Kills all processes that this one has started and that those have started, also in groups and sessions of
// their own, and waits for their end, at most 10 seconds. Needs adopt_orphans(). True when none is left: the
// system cannot end one that waits for a device or a network file system.
bool kill_descendants();

// The supervisor's line to the guard.
class GuardLine {
 public:
  explicit GuardLine(int descriptor) : descriptor_(descriptor) {}
  int descriptor() const { return descriptor_; }  // for poll()
  // The next signal that asked for an end, 0 for none so far. Kills all ranks and ends the process when the
  // guard is no more.
  int next_signal() const;

 private:
  int descriptor_;
};

// Runs `supervise` in a process of its own, in which every signal is blocked, and returns its outcome;
// an Error it throws is one, too. When this returns, no process is left that `supervise` started. Takes over
// signals (StopSignals); signals to the supervisor itself have no effect.
LaunchOutcome run_guarded(const std::function<LaunchOutcome(const GuardLine&)>& supervise);

}  // namespace mulligan
