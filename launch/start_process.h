// How a process of this project begins and ends.
#pragma once

#include <functional>

#include "framework/core/error.h"

namespace mulligan {

// Takes over signals, reports exhaustion, then does `work`. Returns the exit status for main().
int run_process(const std::function<ExitCode()>& work);

}  // namespace mulligan
