// The common part of Schedule, Loss, Optimizer and Backend: one object that a plugin made from its configuration.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "framework/config/plugin_keys.h"
#include "framework/core/error.h"
#include "framework/plugin/plugin.h"

namespace mulligan {

// The host's services for plugins (abi.h), valid for the life of the process.
const mlg_host* plugin_host_services();
// What a backend of this process is running (abi.h); backends write it.
mlg_running* plugin_running();
// Where plugins' log lines go, on whatever thread: level 0 debug, 1 info, 2 warning. Without a sink, warnings go to
// stderr. Returns the sink before, which is called no more.
using PluginLogSink = std::function<void(int level, std::string_view message)>;
PluginLogSink set_plugin_log_sink(PluginLogSink sink);

// Owns the object; neither copied nor moved.
template <typename Table>
class PluginInstance {
 public:
  // Precondition: `plugin` is of Table's kind and `config` was resolved against its keys. If the plugin's constructor refuses,
  // throws config_error with the plugin's own sentence.
  PluginInstance(PluginHandle plugin, const PluginConfig& config)
      : plugin_(std::move(plugin)), table_(plugin_->table<Table>()), section_(config.section()) {
    if (mlg_error error = table_.create(plugin_host_services(), config.view(), &instance_)) {
      throw config_error("[{}]: {} could not be set up: {}", section_, plugin_->description(), error);
    }
  }
  ~PluginInstance() { table_.destroy(instance_); }
  PluginInstance(const PluginInstance&) = delete;
  PluginInstance& operator=(const PluginInstance&) = delete;

  const Plugin& plugin() const { return *plugin_; }
  // The section of its configuration: "schedule", "optimizer.muon.schedule".
  const std::string& section() const { return section_; }

 protected:
  // Calls a member of the table with the instance in front of `arguments`; throws run_error naming the plugin
  // when it reports an error.
  template <typename... Parameters, typename... Arguments>
  void call(mlg_error (*member)(void*, Parameters...), Arguments... arguments) const {
    check(member(instance_, arguments...));
  }
  // The same for a member that writes its result through its last argument.
  template <typename Result, typename... Parameters, typename... Arguments>
  Result result(mlg_error (*member)(void*, Parameters...), Arguments... arguments) const {
    Result out{};
    call(member, arguments..., &out);
    return out;
  }
  void check(mlg_error error) const {
    if (error) throw run_error("{}: {}", plugin_->description(), error);
  }
  const Table& table() const { return table_; }
  void* instance() const { return instance_; }

 private:
  PluginHandle plugin_;
  Table table_;
  std::string section_;
  void* instance_ = nullptr;
};

}  // namespace mulligan
