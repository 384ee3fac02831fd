// The supervisor of `mulligan launch`: attempt after attempt until the run has ended.
#pragma once

#include "launch/launcher/guard.h"
#include "launch/launcher/launch_plan.h"

namespace mulligan {

// Starts the ranks of `plan`, passes signals on, ends all ranks when one fails, and starts them again up to
// plan.restarts times where that may help. Throws config_error and run_error where nothing can be started.
LaunchOutcome supervise(const LaunchPlan& plan, const GuardLine& guard);

}  // namespace mulligan
