// EvaluationSettings of a configuration.
#pragma once

#include <string>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// The first plugin that scores and that resolve_run_plugins did not find. Empty: all were found.
std::string missing_scoring_plugin(const LoadedConfig& loaded);

// As write_evaluation_settings() has them, from resolved keys (resolve_run_plugins for PluginUse::quantize); empty
// without a plugin that scores, where only `mulligan ttt` can score. Throws config_error for ttt.on_collapse = "fallback".
std::string evaluation_settings_text(const LoadedConfig& loaded, PluginHost& host);

}  // namespace mulligan
