#include "framework/run/run_communicator.h"

#include <utility>

#include "framework/run/run_plugins.h"

namespace mulligan {
namespace {

constexpr const char* section = "communicator";

PluginConfig resolved(const PluginTable& table, const Plugin& plugin) {
  return resolve_plugin_keys(table, plugin.name(), key_specs(plugin.name(), plugin.keys()));
}

// Not one that this file chose for another backend.
bool is_written(const std::optional<PluginTable>& table) {
  return table && (table->host.at("plugin").origin.kind != Origin::Kind::defaulted || !table->path.empty() ||
                   !table->stored_path.empty());
}

}  // namespace

bool has_own_communicator(const LoadedConfig& loaded) {
  return is_written(loaded.config.communicator);
}

std::unique_ptr<Communicator> make_run_communicator(LoadedConfig& loaded, PluginHost& host, HostGroup& group,
                                                    Backend& backend, const CommunicatorOptions& options) {
  std::optional<PluginTable>& chosen = loaded.config.communicator;
  if (group.world_size() == 1 && !is_written(chosen)) return make_self_communicator();
  PluginTable table = is_written(chosen)
                          ? *chosen
                          : read_plugin_table(nullptr, section, loaded.file,
                                              backend.queue().kind == MLG_QUEUE_CUDA ? "nccl" : "gloo");
  const PluginHandle handle = load_plugin(host, MLG_COMMUNICATOR, table);
  auto plugin = std::make_unique<CommunicatorPlugin>(handle, resolved(table, *handle));
  if (!chosen) {
    chosen = table;
    loaded.plugins.emplace(section, resolved(table, *handle));
  }
  return make_plugin_communicator(std::move(plugin), group, backend, options);
}

}  // namespace mulligan
