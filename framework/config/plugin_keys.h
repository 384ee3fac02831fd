// The keys of a plugin as it reads them.
#pragma once

#include <mulligan/config.h>

#include <memory>
#include <string>

#include "framework/config/value.h"

namespace mulligan {

// The resolved keys of one plugin instance; what a plugin's create() reads.
class PluginConfig {
 public:
  PluginConfig(std::string plugin, Settings settings);

  const std::string& section() const { return settings_->table(); }
  const std::string& plugin() const { return plugin_; }
  const Settings& settings() const { return *settings_; }

  // The SDK's view of the values. Valid as long as this object, also across moves.
  const mlg_config* view() const { return &view_; }

 private:
  std::string plugin_;
  std::unique_ptr<Settings> settings_;  // at a fixed address: view_.self points to it
  mlg_config view_;
};

}  // namespace mulligan
