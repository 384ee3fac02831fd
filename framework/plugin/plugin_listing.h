// The output of `mulligan plugins [NAME] [--json]`.
#pragma once

#include <string>

#include "framework/plugin/plugin_host.h"

namespace mulligan {

// All plugins found, place by place: kind, name, ABI, file; and unusable files with the reason. Loads every usable
// plugin. Text ends with a newline; `json` gives one object {"places": [...]}.
std::string list_plugins(PluginHost& host, bool json);

// Everything about the plugins named `name` (one per kind): origin, sha256, kernels, and each key with type, default, allowed
// values and help. Throws config_error if there is none.
std::string describe_plugin(PluginHost& host, const std::string& name, bool json);

}  // namespace mulligan
