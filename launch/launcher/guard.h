// The two processes of `mulligan launch`.
//
// The guard is the process that the user started; it only waits. The supervisor starts the ranks and watches them. Each ends
// all ranks if the other is gone, so not even SIGKILL leaves an orphan.
#pragma once

#include <functional>

#include "launch/launcher/launch_plan.h"
#include "launch/launcher/outcome.h"

namespace mulligan {

// Kills all descendants of this process, also in groups and sessions of their own, and waits at most 10 seconds for their end.
// For the processes of run_guarded(), which adopt orphans. Returns true if none is left. The system cannot end a process that
// waits for a device or a network file system.
bool kill_descendants();

// Of the supervisor's connection to the guard: the next signal that asked for an end, 0 for none so far. If the guard is gone, kills all
// ranks and ends the process.
int next_signal(int guard);

// Runs `supervise` in a process of its own, with every signal blocked, and returns its outcome; a thrown Error is an outcome,
// too. When this returns, no process that `supervise` started is left. Takes over signals (StopSignals); signals to the
// supervisor itself have no effect.
LaunchOutcome run_guarded(const std::function<LaunchOutcome(int guard)>& supervise);

// Starts the ranks of `plan`, passes signals on, ends all ranks when one fails, and starts them again up to
// plan.restarts times where that may help. Throws config_error and run_error where nothing can be started.
LaunchOutcome supervise(const LaunchPlan& plan, int guard);

}  // namespace mulligan
