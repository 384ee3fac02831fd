// Whether the clocks of this process agreed about its seconds.
#pragma once

#include "framework/config/eval_config.h"

namespace mulligan {

class RunLog;

// Names the clocks that do not (clock_disagreements, since the program was loaded): a warning in `log`, or under
// strict rules run_error.
void require_true_clocks(const LedgerConfig& limits, RunLog& log);

}  // namespace mulligan
