// The options of `train` that ask what a run would cost in place of training.
#pragma once

#include "launch/program_parts.h"

namespace mulligan {

// --dry-run and what goes with it.
TrainAnswer declare_dry_run(CLI::App& train);

}  // namespace mulligan
