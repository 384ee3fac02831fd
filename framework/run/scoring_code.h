// ledger.rules = "strict": what computes a score is code that the program was built with.
#pragma once

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/run/run_plugins.h"

namespace mulligan {

// Under strict rules throws run_error where a plugin that `use` scores with (the backends; of an adaptation
// also those of [ttt] and the communicator, of an ensemble its plugin) is none of the program's build, and where rows of
// [[backend.kernels]] put other code in the place of a kernel: counting the source tree says nothing about it. What
// only trains is judged where the result is (train_result.h). After resolve_run_plugins().
void require_own_scoring_code(const LoadedConfig& loaded, PluginHost& host, PluginUse use);

}  // namespace mulligan
