#include "framework/plugin/plugin_listing.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "framework/config/plugin_config.h"
#include "framework/config/schema.h"
#include "framework/core/printable.h"
#include "framework/plugin/plugin_call.h"

namespace mulligan {
namespace {

// What a damaged library's table leads to is reported with the file's name, should it crash.
constexpr const char* table_read = "mlg_plugin, whose table is read";

using Json = nlohmann::ordered_json;

// JSON knows no infinities; strings show them and long lists as TOML does.
Json value_json(const ConfigValue& value) {
  switch (value.type()) {
    case ValueType::boolean:
      return value.boolean();
    case ValueType::integer:
      return value.integer();
    case ValueType::real:
      return value.real();
    case ValueType::string:
      return value.string();
    case ValueType::real_list:
      return value.reals();
    case ValueType::string_list:
      return value.strings();
  }
  return nullptr;
}

Json key_json(const KeySpec& key) {
  return {{"name", key.name},
          {"type", short_name(key.type)},
          {"default", key.required ? Json(nullptr) : value_json(key.default_value)},
          {"required", key.required},
          {"allowed", allowed_values(key)},
          {"help", key.help}};
}

std::vector<KeySpec> specs_of(const Plugin& plugin) {
  return key_specs(plugin.name(), plugin.keys().data(), static_cast<std::uint32_t>(plugin.keys().size()));
}

Json plugin_json(const Plugin& plugin, const PluginPlace& place) {
  Json keys = Json::array(), kernels = Json::array();
  for (const KeySpec& key : specs_of(plugin)) keys.push_back(key_json(key));
  for (const mlg_kernel& kernel : plugin.kernels()) {
    kernels.push_back({{"name", kernel.name}, {"backend", kernel.backend}, {"signature", kernel.signature}});
  }
  return {{"kind", kind_word(plugin.kind())},
          {"name", plugin.name()},
          {"version", plugin.version()},
          {"summary", plugin.summary()},
          {"abi", plugin.abi()},
          {"state_version", plugin.state_version()},
          {"path", plugin.path().string()},
          {"origin", place.origin},
          {"sha256", plugin.sha256()},
          {"keys", keys},
          {"kernels", kernels}};
}

// The plugin of a usable file, or null with the reason in `problem`.
PluginHandle try_load(PluginHost& host, const PluginFile& file, std::string& problem) {
  problem = file.problem;
  if (!problem.empty()) return nullptr;
  try {
    PluginHandle plugin = host.load(file.marker->kind, file.marker->name, file.path);
    specs_of(*plugin);
    return plugin;
  } catch (const Error& error) {
    problem = error.what();
    return nullptr;
  }
}

std::string describe_text(const Plugin& plugin, const PluginPlace& place) {
  std::string text = fmt::format(
      "{} '{}' {}: {}\n  file    {} (from {})\n  sha256  {}\n  ABI     {}, state version {}\n",
      kind_word(plugin.kind()), plugin.name(), plugin.version(), plugin.summary(), plugin.path().string(),
      place.origin, plugin.sha256(), plugin.abi(), plugin.state_version());
  for (const mlg_kernel& kernel : plugin.kernels()) {
    text += fmt::format("  kernel  {} on {}: {}\n", kernel.name, kernel.backend, kernel.signature);
  }
  const std::vector<KeySpec> keys = specs_of(plugin);
  if (keys.empty()) return text + "  It has no keys.\n";
  std::vector<std::array<std::string, 5>> rows{{"key", "type", "default", "allowed", "meaning"}};
  for (const KeySpec& key : keys) {
    const std::string allowed = allowed_values(key);
    rows.push_back({key.name, std::string(short_name(key.type)),
                    key.required ? "(required)" : to_toml(key.default_value),
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
  std::size_t names = 16, files = 28;
  for (const PluginHost::SearchedPlace& searched : host.searched_places()) {
    for (const PluginFile& file : searched.files) {
      if (file.marker) names = std::max(names, file.marker->name.size());
      files = std::max(files, file.path.filename().string().size());
    }
  }
  Json places = Json::array();
  std::string text;
  for (const PluginHost::SearchedPlace& searched : host.searched_places()) {
    Json plugins = Json::array(), rejected = Json::array();
    text += fmt::format("{} (from {}){}\n", searched.place.path.string(), searched.place.origin,
                        searched.problem.empty() ? "" : ": " + searched.problem);
    for (const PluginFile& file : searched.files) {
      const PluginCallNote note(file.path.c_str(), table_read);
      std::string problem;
      if (const PluginHandle plugin = try_load(host, file, problem)) {
        plugins.push_back(plugin_json(*plugin, searched.place));
        text += fmt::format("  {:<12} {:<{}} {:<8} ABI {:<5} {:<{}} {}\n", kind_word(plugin->kind()),
                            plugin->name(), names, plugin->version(), plugin->abi(),
                            file.path.filename().string(), files, plugin->summary());
      } else {
        rejected.push_back({{"path", file.path.string()}, {"problem", problem}});
        text += fmt::format("  unusable     {}: {}\n", file.path.filename().string(), problem);
      }
    }
    places.push_back({{"origin", searched.place.origin},
                      {"path", searched.place.path.string()},
                      {"problem", searched.problem},
                      {"plugins", plugins},
                      {"unusable", rejected}});
  }
  return output({{"places", places}}, text, json);
}

std::string describe_plugin(PluginHost& host, const std::string& name, bool json) {
  Json plugins = Json::array();
  std::string text;
  std::vector<std::string> names;
  for (const PluginHost::SearchedPlace& searched : host.searched_places()) {
    for (const PluginFile& file : searched.files) {
      const PluginCallNote note(file.path.c_str(), table_read);
      if (!file.marker) continue;
      names.push_back(file.marker->name);
      if (file.marker->name != name) continue;
      if (!file.problem.empty())
        throw config_error("the plugin file '{}' {}.", file.path.string(), file.problem);
      const PluginHandle plugin = host.load(file.marker->kind, name, file.path);
      plugins.push_back(plugin_json(*plugin, searched.place));
      text += describe_text(*plugin, searched.place);
    }
  }
  if (plugins.empty()) {
    if (const std::string why = why_no_plugin(name); !why.empty())
      throw config_error("there is no plugin '{}', {}.", name, why);
    const std::string nearest = nearest_name(name, names);
    throw config_error("there is no plugin '{}'{}; 'mulligan plugins' lists those that were found.", name,
                       nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest));
  }
  return output({{"plugins", plugins}}, text, json);
}

}  // namespace mulligan
