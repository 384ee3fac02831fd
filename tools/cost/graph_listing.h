// The calls of a micro-step: as the model is written where run.fused_kernels is off, else as the passes leave it.
#pragma once

#include "tools/cost/profile.h"

namespace mulligan {

// The micro-step of the chosen phase on the cuda backend's planning device, without GPU or data. A line per call:
// "%2, %3 = kernel(%1, NAME[offset], -, scale=1)", scratch values numbered as they appear: equal graphs have equal
// listings. Throws Error.
std::string list_micro_step(LoadedConfig& loaded, PluginHost& host, const ProfileOptions& options);

}  // namespace mulligan
