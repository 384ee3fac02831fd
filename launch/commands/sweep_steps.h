// A sweep's steps: training and test-time training of this program.
#pragma once

#include "framework/sweep/sweep.h"

namespace mulligan {

// `host` must outlive them.
SweepSteps sweep_steps(PluginHost& host);

}  // namespace mulligan
