#include "framework/run/device_plan.h"

#include <algorithm>

#include "framework/core/error.h"

namespace mulligan {

RunPlugins device_plugins(const LoadedConfig& loaded, PluginHost& host, std::string& note) {
  try {
    RunPlugins plugins = make_run_plugins(loaded, host);
    if (plugins.backend->info().computes) return plugins;
    note = "the backend computes nothing";
  } catch (const Error& error) {
    note = error.what();
  }
  return {};
}

std::int64_t workspace_on(Backend& device, const std::vector<Program*>& programs) {
  std::int64_t bytes = 0;
  for (const Program* program : programs) {
    bytes = std::max(bytes, Program(device, program->graph(), program->name()).workspace_bytes());
  }
  return bytes;
}

}  // namespace mulligan
