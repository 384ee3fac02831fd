#include "framework/check/plugin_check.h"

#include "framework/config/plugin_config.h"
#include "framework/config/schema.h"
#include "framework/config/toml_document.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

PluginConfig configured(const Plugin& plugin, std::span<const std::string> overrides) {
  const auto rows = key_specs(plugin.name(), plugin.keys());
  ConfigNode node = parse_toml("", "--set");
  apply_overrides(node, overrides);
  const PluginTable table = read_plugin_table(&node, plugin.name(), "--set", plugin.name());
  return resolve_plugin_keys(table, plugin.name(), rows);
}

}  // namespace

CheckList check_plugin(PluginHost& host, const PluginHandle& plugin, std::span<const std::string> overrides,
                       const CheckBackend& on) {
  const PluginConfig config = configured(*plugin, overrides);
  CheckList list;
  list.add("loads; ABI, table and keys are sound", [] { return std::string(); });
  const PluginHandle computing = host.load(MLG_BACKEND, on.plugin);
  const bool is_cpu = on.plugin == "cpu";
  const auto make_backend = [&](int threads) {
    std::vector<std::string> keys = on.overrides;
    if (is_cpu) keys.push_back(fmt::format("threads={}", threads));
    auto backend = std::make_unique<Backend>(computing, configured(*computing, keys));
    if (plugin != computing) backend->add_kernels(*plugin);
    return backend;
  };
  const BackendMaker make{make_backend, is_cpu};
  const auto run = [&]() {
    switch (plugin->kind()) {
      case MLG_BACKEND:
        return check_backend(plugin, config, list);
      case MLG_LOSS:
        return check_loss(plugin, config, make, list);
      case MLG_OPTIMIZER:
        return check_optimizer(plugin, config, make, list);
      case MLG_SCHEDULE:
        return check_schedule(plugin, config, list);
      case MLG_TTT:
        return check_adapters(plugin, config, make, list);
      case MLG_QUANTIZER:
        return check_quantizer(plugin, config, list);
      case MLG_COMMUNICATOR:
        return check_communicator(plugin, config, make, list);
      case MLG_TRANSFORM:
        return check_transform(plugin, config, list);
      case MLG_ENSEMBLE:
        return check_ensemble(plugin, config, list);
      case MLG_WRAPPER:
        return check_wrapper(plugin, config, make, list);
    }
  };
  // What throws outside of a line (a constructor that refuses the keys) is a line of its own.
  std::string refusal;
  try {
    run();
  } catch (const Error& error) {
    refusal = error.what();
  }
  if (!refusal.empty()) list.add("can be set up", [&] { return refusal; });
  return list;
}

std::vector<PluginHandle> plugins_to_check(PluginHost& host, const std::string& name) {
  if (name.find('/') != name.npos || name.ends_with(".so")) return {host.load_file(name)};
  std::vector<PluginHandle> plugins;
  for (const std::filesystem::path& file : host.find(name)) {
    const PluginHandle plugin = plugins.emplace_back(host.load_file(file));
    config_error_if(
        plugin->name() != name,
        "the plugin file '{}' holds '{}', and no configuration finds that under this name; rename the "
        "file to mulligan_{}.so, or the plugin to '{}'.",
        file.string(), plugin->name(), plugin->name(), name);
  }
  return plugins;
}

}  // namespace mulligan
