// Makes the programs of a whole run on a backend to get their kernels. It computes nothing and reads no data.
#pragma once

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// Each makes the programs of one stage of `loaded`, resolves its plugins, binds the programs, and waits for the backend. That
// of [backend] must compute nothing, like the cuda backend's device "compile"; phases run on it, too. Throws Error. Training
// with validation, as the first of `ranks` ranks, with the checks before the start.
void make_training_programs(LoadedConfig& loaded, PluginHost& host, int ranks);
// Calibration, and plain evaluation of stored weights. Without [quantize] the latter alone.
void make_scoring_programs(LoadedConfig& loaded, PluginHost& host);
// Test-time training on made-up documents, with the base model's training. Precondition: there is [ttt].
void make_ttt_programs(LoadedConfig& loaded, PluginHost& host);

}  // namespace mulligan
