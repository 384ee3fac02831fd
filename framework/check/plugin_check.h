// `mulligan plugins check`: tests a plugin against the contract of its kind, on small inputs, without a run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/check/kind_checks.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// The backend that computes, and its keys ("device=emulated").
struct CheckBackend {
  std::string plugin = "cpu";
  std::vector<std::string> overrides = {};
};

// All checks of one plugin. `overrides` set its keys ("momentum=0.9"). `host` must find the backend. Throws config_error if the keys are
// not the plugin's or the backend's.
CheckList check_plugin(PluginHost& host, const PluginHandle& plugin,
                       std::span<const std::string> overrides = {}, const CheckBackend& on = {});

// The plugins with this `name`: a library file (with a '/' or the end ".so"), or all kinds of that name.
std::vector<PluginHandle> plugins_to_check(PluginHost& host, const std::string& name);

}  // namespace mulligan
