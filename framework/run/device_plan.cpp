#include "framework/run/device_plan.h"

#include <algorithm>
#include <set>

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

void plan_on_cuda(LoadedConfig& loaded) {
  RunConfig& config = loaded.config;
  if (config.backend.plugin != "cuda") {
    config.backend = read_plugin_table(nullptr, "backend", loaded.file, "cuda");
    config.kernels.clear();
  }
  Origin origin;
  origin.kind = Origin::Kind::derived;
  const ConfigNode* device = config.backend.keys.find("device");
  if (!device || !(device->value == ConfigValue(std::string("compile")))) {
    config.backend.keys.put("device", ConfigNode::make_leaf(ConfigValue(std::string("plan")), origin));
  }
  for (Phase& phase : config.phases) phase.backend.reset();
}

std::int64_t product_measurements(const Backend& device, const std::vector<Program*>& programs) {
  std::set<std::uint32_t> made;
  for (const Program* program : programs) {
    for (void* handle : program->handles()) made.insert(device.work(handle).measurement);
  }
  made.erase(0);
  return static_cast<std::int64_t>(made.size());
}

}  // namespace mulligan
