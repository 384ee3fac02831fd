// What a plan made on the `null` backend learns from the configured one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/program.h"
#include "framework/run/run_plugins.h"

namespace mulligan {

// The configured backend with the run's plugins, where it can be started and computes; otherwise `backend` is
// null, and `note` says why.
RunPlugins device_plugins(const LoadedConfig& loaded, PluginHost& host, std::string& note);

// Bytes of workspace that the kernels of these programs share on `device`, which takes no memory for it.
std::int64_t workspace_on(Backend& device, const std::vector<Program*>& programs);

}  // namespace mulligan
