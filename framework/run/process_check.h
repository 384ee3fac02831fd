// Whether this process can be believed: its clocks agree, and no code from outside answers in the place of libraries.
#pragma once

#include "framework/config/eval_config.h"

namespace mulligan {

class RunLog;

// Names the clocks that do not agree (clock_disagreements, since the program was loaded): a warning in `log`, or under
// strict rules run_error; there also code that was put into the process from outside (preloaded_code()).
void require_true_clocks(const LedgerConfig& limits, RunLog& log);

// The latter at the start, in `log`, so that no run is made in vain; and LD_LIBRARY_PATH, which is no fault.
void say_preloaded(const LedgerConfig& limits, RunLog& log);

}  // namespace mulligan
