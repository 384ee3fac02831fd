#include "launch/evaluator/plugins.h"

#include <algorithm>

#include "framework/core/error.h"

// One function for each plugin, whose file was compiled with its own name for mlg_plugin() (CMakeLists.txt).
#define MULLIGAN_LINKED(name) extern "C" const mlg_plugin_header* mlg_plugin_##name();
MULLIGAN_LINKED_PLUGINS
#undef MULLIGAN_LINKED

namespace mulligan {
namespace {

// A plugin that finds no such key ends the program.
void require_keys(const mlg_plugin_header& header, const EvaluationPlugin& plugin) {
  for (std::uint32_t i = 0; i < header.key_count; ++i) {
    const mlg_key& key = header.keys[i];
    if (std::ranges::none_of(plugin.keys, [&](const auto& set) {
          return set.first == key.name && static_cast<int>(set.second.type()) + MLG_KEY_BOOL == key.type;
        }))
      throw data_error("the artifact lacks the key '{}' of the plugin '{}'; make it again", key.name,
                       plugin.name);
  }
}

}  // namespace

PluginHandle linked_plugin(mlg_kind kind, const EvaluationPlugin& plugin) {
#define MULLIGAN_LINKED(name) mlg_plugin_##name(),
  for (const mlg_plugin_header* header : {MULLIGAN_LINKED_PLUGINS}) {
#undef MULLIGAN_LINKED
    if (header->kind != kind || header->name != plugin.name) continue;
    require_keys(*header, plugin);
    return std::make_shared<const Plugin>(header, "linked", "");
  }
  throw config_error(
      "this evaluator was built without the plugin '{}'; build it from the artifact's own files.",
      plugin.name);
}

PluginConfig plugin_config(const EvaluationPlugin& plugin) {
  Settings settings(plugin.section);
  for (const auto& [name, value] : plugin.keys) settings.all().push_back({name, value, {}});
  return {plugin.name, std::move(settings)};
}

}  // namespace mulligan
