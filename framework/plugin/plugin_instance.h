// The part that Schedule, Loss, Optimizer and Backend share: one object made by a plugin from its
// configuration.
#pragma once

#include <string>

#include "framework/config/plugin_config.h"
#include "framework/core/error.h"
#include "framework/plugin/plugin.h"

namespace mulligan {

// The host's services for plugins (abi.h), valid for the life of the process.
const mlg_host* plugin_host_services();
// Where plugins' log lines go: level 0 debug, 1 info, 2 warning. Without a sink, warnings go to stderr.
void set_plugin_log_sink(void (*sink)(int level, std::string_view message));

// Owns the object; neither copied nor moved.
template <typename Table>
class PluginInstance {
 public:
  // Precondition: `plugin` is of Table's kind and `config` was resolved against its keys. Throws config_error
  // with the plugin's own sentence when its constructor refuses.
  PluginInstance(PluginHandle plugin, const PluginConfig& config)
      : plugin_(std::move(plugin)), table_(plugin_->table<Table>()) {
    if (mlg_error error = table_.create(plugin_host_services(), config.view(), &instance_)) {
      throw config_error("[{}]: {} could not be set up: {}", config.section(), plugin_->description(), error);
    }
  }
  ~PluginInstance() { table_.destroy(instance_); }
  PluginInstance(const PluginInstance&) = delete;
  PluginInstance& operator=(const PluginInstance&) = delete;

  const Plugin& plugin() const { return *plugin_; }

 protected:
  // Throws run_error naming the plugin when a call reports one.
  void check(mlg_error error) const {
    if (error) throw run_error("{}: {}", plugin_->description(), error);
  }
  const Table& table() const { return table_; }
  void* instance() const { return instance_; }

 private:
  PluginHandle plugin_;
  Table table_;
  void* instance_ = nullptr;
};

}  // namespace mulligan
