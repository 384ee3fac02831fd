#include "tests/support/plugins.h"

#include <fmt/format.h>

#include "framework/config/plugin_config.h"
#include "framework/config/toml_document.h"
#include "tests/support/test_device.h"

namespace mulligan {

PluginHost& test_plugin_host() {
  static PluginHost host(plugin_places({}));
  return host;
}

PluginConfig test_plugin_config(const PluginHandle& plugin, const std::string& toml) {
  const ConfigNode node = parse_toml(toml, "test.toml");
  const PluginTable table = read_plugin_table(&node, "test", "test.toml", plugin->name());
  return resolve_plugin_keys(table, plugin->name(), key_specs(plugin->name(), plugin->keys()));
}

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return make_plugin<Backend>(MLG_BACKEND, "cpu", fmt::format("threads = {}", threads));
}

std::unique_ptr<Backend> make_test_backend(int threads) {
  std::unique_ptr<Backend> backend =
      test_device_chosen()
          ? make_plugin<Backend>(MLG_BACKEND, "cuda", fmt::format("device = \"{}\"", test_device()))
          : make_cpu_backend(threads);
  backend->set_fused_kernels(test_fused_kernels());
  return backend;
}

}  // namespace mulligan
