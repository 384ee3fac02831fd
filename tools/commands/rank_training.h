// A training by several ranks on this machine, as `mulligan launch` starts them.
#pragma once

#include <string>
#include <vector>

#include "framework/report/console.h"
#include "tools/sweep/sweep.h"

namespace mulligan {

// Begins anew in the run directory and waits for the end; what the ranks say goes to the console and to
// DIRECTORY_ranks. Throws Error with the launcher's exit code.
void train_by_ranks(const RankTraining& training, const std::vector<std::string>& plugin_paths,
                    const ConsoleOptions& console);

}  // namespace mulligan
