#include "framework/config/plugin_config.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "framework/config/toml_document.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// Keys have the types of ValueType, in its order.
static_assert(MLG_KEY_FLOAT_LIST - MLG_KEY_BOOL == static_cast<int>(ValueType::real_list));

std::vector<std::string> split_choices(const char* text) {
  std::vector<std::string> words;
  std::istringstream all(text == nullptr ? "" : text);
  for (std::string word; std::getline(all, word, '|');) words.push_back(word);
  return words;
}

KeySpec key_spec(const std::string& plugin, const mlg_key& row) {
  KeySpec key;
  key.name = row.name == nullptr ? "" : row.name;
  const bool known_type = row.type >= MLG_KEY_BOOL && row.type <= MLG_KEY_FLOAT_LIST;
  config_error_if(key.name.empty() || key.name.find('.') != std::string::npos || !known_type,
                  "plugin '{}' declares the key '{}' of type {}, which is not a bare name with a type of "
                  "mulligan/config.h; fix the plugin.",
                  plugin, key.name, row.type);
  key.type = static_cast<ValueType>(row.type - MLG_KEY_BOOL);
  key.help = row.help == nullptr ? "" : row.help;
  if (key.type == ValueType::integer || key.type == ValueType::real || key.type == ValueType::real_list) {
    key.minimum = row.minimum;
    key.maximum = row.maximum;
  }
  key.choices = split_choices(row.choices);
  key.is_required = row.default_value == nullptr;
  if (key.is_required) return key;
  // The default goes through the checks every user's value goes through.
  const std::string origin = fmt::format("plugin '{}', default of its key '{}'", plugin, key.name);
  const ConfigNode tree = parse_toml(key.name + " = " + row.default_value, origin);
  key.default_value = resolve_keys({&key, 1}, &tree, {}, origin).at(key.name).value;
  return key;
}

}  // namespace

std::string absolute_file(const Setting& setting) {
  if (setting.value.string().empty()) return {};
  const fs::path folder = fs::path(setting.origin.file).parent_path();  // empty for --set: the current folder
  return fs::absolute(folder / setting.value.string()).lexically_normal().string();
}

void declare_keys(Schema<PluginTable>& s) {
  s.key("plugin", &PluginTable::plugin,
        "name of the plugin; the remaining keys of the table are the plugin's own (mulligan plugins NAME)");
  s.key("path", &PluginTable::path,
        "library file of the plugin, relative to this file; empty: found by name on the plugin search path");
}

std::vector<KeySpec> plugin_table_keys(const std::string& default_plugin, std::span<const KeySpec> extra) {
  std::vector<KeySpec> keys = schema_of<PluginTable>().keys();
  keys.front().default_value = ConfigValue(default_plugin);
  keys.insert(keys.end(), extra.begin(), extra.end());
  return keys;
}

PluginTable read_plugin_table(const ConfigNode* table, const std::string& section, const std::string& source,
                              const std::string& default_plugin, std::span<const std::string> elsewhere,
                              std::span<const KeySpec> extra) {
  const std::vector<KeySpec> keys = plugin_table_keys(default_plugin, extra);
  PluginTable result;
  result.section = section;
  result.source = source;
  ConfigNode host_part = ConfigNode::make_table(table == nullptr ? Origin{} : table->origin);
  if (table != nullptr && table->is_table()) {
    result.keys = ConfigNode::make_table(table->origin);
    for (const ConfigMember& member : table->members) {
      if (std::ranges::find(elsewhere, member.name) != elsewhere.end()) continue;
      const bool hosts = std::ranges::find(keys, member.name, &KeySpec::name) != keys.end();
      (hosts ? host_part : result.keys).put(member.name, member.node);
    }
  }
  // Anything but a table is handed on as it is, for resolve_keys to refuse.
  result.host =
      resolve_keys(keys, table == nullptr || table->is_table() ? &host_part : table, section, source);
  Setting& plugin = result.host.all()[0];
  Setting& path = result.host.all()[1];
  if (path.origin.kind == Origin::Kind::stored) {
    result.stored_path = path.value.string();
    path.value = ConfigValue("");
    path.origin = Origin{};
    if (plugin.origin.kind == Origin::Kind::defaulted) plugin.value = ConfigValue("");
  }
  path.value = ConfigValue(absolute_file(path));
  // A path alone says which plugin is meant: the default must not claim otherwise.
  if (!path.value.string().empty() && plugin.origin.kind == Origin::Kind::defaulted)
    plugin.value = ConfigValue("");
  result.plugin = plugin.value.string();
  result.path = path.value.string();
  config_error_if(
      result.plugin.empty() && result.path.empty() && result.stored_path.empty(),
      "{}: the table [{}] names no plugin; add plugin = \"NAME\" ('mulligan plugins' lists them).",
      table == nullptr ? source : table->origin.text(), section);
  return result;
}

std::vector<KeySpec> key_specs(const std::string& plugin, std::span<const mlg_key> keys) {
  std::vector<KeySpec> specs;
  for (const mlg_key& row : keys) {
    KeySpec key = key_spec(plugin, row);
    config_error_if(std::ranges::find(specs, key.name, &KeySpec::name) != specs.end(),
                    "plugin '{}' declares the key '{}' twice; fix the plugin.", plugin, key.name);
    specs.push_back(std::move(key));
  }
  return specs;
}

PluginConfig resolve_plugin_keys(const PluginTable& table, const std::string& plugin,
                                 std::span<const KeySpec> rows) {
  for (const KeySpec& row : rows) {
    config_error_if(
        table.host.find(row.name) != nullptr,
        "plugin '{}' declares the key '{}', which the host itself reads in [{}]; rename it in the plugin.",
        plugin, row.name, table.section);
  }
  for (const ConfigMember& member : table.keys.members) {
    if (member.node.origin.kind != Origin::Kind::stored) continue;
    throw config_error(
        "{}: {}.{} is the path {}, which stored data may not name; allow it with --set {}.{}={}",
        member.node.origin.text(), table.section, member.name, to_toml(member.node.value), table.section,
        member.name, member.node.value.string());
  }
  std::vector<std::string> host_names;  // candidates for "did you mean"
  for (const Setting& setting : table.host.all()) host_names.push_back(setting.name);
  return PluginConfig(plugin, resolve_keys(rows, &table.keys, table.section, table.source, host_names));
}

}  // namespace mulligan
