// The process at the other end of a BlindChecker.
#pragma once

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/ttt/blind_link.h"

namespace mulligan {

// Serves `link` until its other end goes. Confines itself before any plugin is loaded, and before the first
// score from all paths as well. Reads no data. What fails is told to the other end.
void serve_blind_checks(BlindLink& link, LoadedConfig& loaded, PluginHost& host);

}  // namespace mulligan
