// EvaluationSettings of a configuration.
#pragma once

#include <string>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// As write_evaluation_settings() has them, from resolved keys (resolve_run_plugins for PluginUse::quantize); empty
// where only `mulligan ttt` can score: with ttt.on_collapse = "fallback".
std::string evaluation_settings_text(const LoadedConfig& loaded, PluginHost& host);

}  // namespace mulligan
