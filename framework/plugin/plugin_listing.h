// What `mulligan plugins [NAME] [--json]` prints.
#pragma once

#include <string>

#include "framework/plugin/plugin_host.h"

namespace mulligan {

// All plugins found, place by place: kind, name, version, ABI, file; and files that cannot be used, with the
// reason. Loads every usable plugin. Text ends with a newline; `json` gives one object {"places": [...]}.
std::string list_plugins(PluginHost& host, bool json);

// Everything about the plugins named `name` (one per kind): origin, sha256, kernels, and each key with type,
// default, allowed values and help. Throws config_error when there is none.
std::string describe_plugin(PluginHost& host, const std::string& name, bool json);

}  // namespace mulligan
