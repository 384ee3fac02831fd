// Whether code from outside answers in the place of libraries. All ranks are asked, for one alone can make a
// score false.
#pragma once

#include "framework/config/eval_config.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

class RunLog;

// Collective. Throws run_error under strict rules where code was put into a process from outside
// (preloaded_code()). A rank that is concerned throws its own sentence, and the others the verdict about it:
// none goes on.
void require_true_processes(const LedgerConfig& limits, HostGroup& group, RunLog& log);

// Collective. The latter at the start, in `log`, so that no run is made in vain; and LD_LIBRARY_PATH, which
// is no fault.
void say_preloaded(const LedgerConfig& limits, HostGroup& group, RunLog& log);

}  // namespace mulligan
