// Plugins of this build for tests, loaded and configured the way a run does it.
#pragma once

#include <memory>
#include <string>

#include "framework/plugin/backend.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// The process-wide host over the plugins of this build.
PluginHost& test_plugin_host();

// The plugin's keys resolved from TOML text such as "momentum = 0.9\nnesterov = true".
PluginConfig test_plugin_config(const PluginHandle& plugin, const std::string& toml = "");

// An instance of T (Backend, Loss, Optimizer, Schedule) made by plugin `name` of that kind. `file`: its library, where it is not
// one of this build's plugins.
template <typename T>
std::unique_ptr<T> make_plugin(mlg_kind kind, const std::string& name, const std::string& toml = "",
                               const std::string& file = "") {
  const PluginHandle plugin = test_plugin_host().load(kind, name, file);
  return std::make_unique<T>(plugin, test_plugin_config(plugin, toml));
}

// The cpu backend with `threads` threads (0: all).
std::unique_ptr<Backend> make_cpu_backend(int threads = 0);
// The same, unless MULLIGAN_TEST_DEVICE is set: then the cuda backend on that device (test_device.h).
std::unique_ptr<Backend> make_test_backend(int threads = 0);

}  // namespace mulligan
