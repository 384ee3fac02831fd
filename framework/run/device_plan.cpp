#include "framework/run/device_plan.h"

#include <algorithm>
#include <set>
#include <utility>

namespace mulligan {
namespace {

// By prefix of the name; the last one takes the rest.
const std::vector<std::pair<std::string_view, std::string_view>> categories = {
    {"master/", "master weights"},
    {"compute/", "compute copies"},
    {"gradient/", "gradients"},
    {"optimizer/", "optimiser state"},
    {"carried", "gradients as they travel between ranks"},
    {"ema", "averaged weights"},
    {"evaluation", "evaluation weights"},
    {"rest/", "weights at rest"},
    {"wrapper/", "state of the wrapper"},
    {"ttt/batch", "adapters and their optimiser's state"},
    {"ttt/base/optimizer", "optimiser state of the base model"},
    {"", "inputs, tables and metrics"},
};

}  // namespace

std::vector<MemoryRow> memory_by_category(const std::map<std::string, std::int64_t>& tensor_bytes) {
  std::vector<MemoryRow> rows;
  for (const auto& [prefix, what] : categories) rows.push_back({std::string(what), 0});
  for (const auto& [name, bytes] : tensor_bytes) {
    std::size_t category = 0;
    while (!name.starts_with(categories[category].first)) ++category;
    rows[category].bytes += bytes;
  }
  std::erase_if(rows, [](const MemoryRow& row) { return row.bytes == 0; });
  return rows;
}

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
  const ConfigNode* device = config.backend.keys.find("device");
  if (!device || !(device->value == ConfigValue("compile"))) {
    config.backend.keys.put("device", ConfigNode::make_leaf(ConfigValue("plan"), Origin::derived()));
  }
  for (Phase& phase : config.phases) phase.backend.reset();
}

std::int64_t matmul_measurements(const Backend& device, const std::vector<Program*>& programs) {
  std::set<std::uint32_t> made;
  for (const Program* program : programs) {
    for (void* handle : program->handles()) made.insert(device.work(handle).measurement);
  }
  made.erase(0);
  return static_cast<std::int64_t>(made.size());
}

}  // namespace mulligan
