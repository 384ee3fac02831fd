// The plugins that are linked into mulligan_evaluate.
#pragma once

#include "framework/artifact/evaluation_settings.h"
#include "framework/config/plugin_keys.h"
#include "framework/plugin/plugin.h"

namespace mulligan {

// Throws config_error where the program was built without it.
PluginHandle linked_plugin(mlg_kind kind, const EvaluationPlugin& plugin);
// Its keys as a plugin reads them.
PluginConfig plugin_config(const EvaluationPlugin& plugin);

}  // namespace mulligan
