// How a process of this project begins and ends.
#pragma once

#include <functional>

#include "framework/core/error.h"

namespace mulligan {

// Installs the handling of signals and of exhausted memory, then calls `work`. Returns the exit status for main().
int run_process(const std::function<ExitCode()>& work);

}  // namespace mulligan
