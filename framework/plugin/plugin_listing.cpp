#include "framework/plugin/plugin_listing.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "framework/config/plugin_config.h"
#include "framework/config/schema.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;

Json key_json(const KeySpec& key) {
  return {{"name", key.name},
          {"type", short_name(key.type)},
          {"default", key.is_required ? Json(nullptr) : key.default_value.visit([](const auto& value) {
             return Json(value);
           })},
          {"required", key.is_required},
          {"allowed", allowed_values(key)},
          {"help", key.help}};
}

Json plugin_json(const Plugin& plugin, const PluginPlace& place) {
  Json keys = Json::array(), kernels = Json::array();
  for (const KeySpec& key : key_specs(plugin.name(), plugin.keys())) keys.push_back(key_json(key));
  for (const mlg_kernel& kernel : plugin.kernels()) {
    kernels.push_back({{"name", kernel.name}, {"backend", kernel.backend}, {"signature", kernel.signature}});
  }
  return {{"kind", kind_word(plugin.kind())},
          {"name", plugin.name()},
          {"summary", plugin.summary()},
          {"abi", plugin.abi()},
          {"state_version", plugin.state_version()},
          {"path", plugin.path().string()},
          {"origin", place.origin},
          {"sha256", plugin.sha256()},
          {"keys", keys},
          {"kernels", kernels}};
}

std::string describe_text(const Plugin& plugin, const PluginPlace& place) {
  std::string text =
      fmt::format("{} '{}': {}\n  file    {} (from {})\n  sha256  {}\n  ABI     {}, state version {}\n",
                  kind_word(plugin.kind()), plugin.name(), plugin.summary(), plugin.path().string(),
                  place.origin, plugin.sha256(), plugin.abi(), plugin.state_version());
  for (const mlg_kernel& kernel : plugin.kernels()) {
    text += fmt::format("  kernel  {} on {}: {}\n", kernel.name, kernel.backend, kernel.signature);
  }
  const std::vector<KeySpec> keys = key_specs(plugin.name(), plugin.keys());
  if (keys.empty()) return text + "  It has no keys.\n";
  std::vector<std::array<std::string, 5>> rows{{"key", "type", "default", "allowed", "meaning"}};
  for (const KeySpec& key : keys) {
    const std::string allowed = allowed_values(key);
    rows.push_back({key.name, std::string(short_name(key.type)),
                    key.is_required ? "(required)" : to_toml(key.default_value),
                    allowed.empty() ? "any" : allowed, key.help});
  }
  std::array<std::size_t, 4> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    text += ' ';
    for (std::size_t i = 0; i < widths.size(); ++i) text += fmt::format(" {:<{}} ", row[i], widths[i]);
    text += ' ' + row.back() + '\n';
  }
  return text;
}

// A path or a library's own words may hold anything.
std::string output(const Json& json, const std::string& text, bool as_json) {
  if (as_json) return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return printable(text, LineBreaks::kept);
}

}  // namespace

std::string list_plugins(PluginHost& host, bool json) {
  Json places = Json::array();
  std::string text;
  for (const PluginPlace& place : host.search()) {
    Json plugins = Json::array(), rejected = Json::array();
    text += fmt::format("{} (from {}){}\n", place.path.string(), place.origin,
                        place.problem.empty() ? "" : ": " + place.problem);
    for (const std::filesystem::path& file : place.files) {
      try {
        const PluginHandle plugin = host.load_file(file);
        plugins.push_back(plugin_json(*plugin, place));
        text += fmt::format("  {:<12} {:<20} ABI {:<5} {:<32} {}\n", kind_word(plugin->kind()),
                            plugin->name(), plugin->abi(), file.filename().string(), plugin->summary());
      } catch (const Error& error) {
        rejected.push_back({{"path", file.string()}, {"problem", error.what()}});
        text += fmt::format("  unusable     {}: {}\n", file.filename().string(), error.what());
      }
    }
    places.push_back({{"origin", place.origin},
                      {"path", place.path.string()},
                      {"problem", place.problem},
                      {"plugins", plugins},
                      {"unusable", rejected}});
  }
  return output({{"places", places}}, text, json);
}

std::string describe_plugin(PluginHost& host, const std::string& name, bool json) {
  Json plugins = Json::array();
  std::string text;
  host.find(name);  // refuses a name that no file has
  for (const PluginPlace& place : host.search()) {
    for (const std::filesystem::path& file : place.files) {
      if (plugin_name_of(file) != name) continue;
      const PluginHandle plugin = host.load_file(file);
      plugins.push_back(plugin_json(*plugin, place));
      text += describe_text(*plugin, place);
    }
  }
  return output({{"plugins", plugins}}, text, json);
}

}  // namespace mulligan
