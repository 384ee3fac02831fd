// The calls of a micro-step: as the model is written where run.fused_kernels is off, else as the passes leave it.
#pragma once

#include <string>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// The micro-step of a phase ("": the first) on the cuda backend's planning device, without GPU or data. A line per call:
// "%2, %3 = kernel(%1, NAME[offset], -, scale=1)", scratch values numbered as they appear: equal graphs have equal
// listings. Throws Error.
std::string list_micro_step(LoadedConfig& loaded, PluginHost& host, const std::string& phase);

}  // namespace mulligan
