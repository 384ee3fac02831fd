// Plugin tables: what the host reads from them itself, and the plugin's own keys, declared at run time
// by the plugin.
#pragma once

#include <mulligan/abi.h>
#include <mulligan/config.h>

#include <span>
#include <string>
#include <vector>

#include "framework/config/config_tree.h"
#include "framework/config/plugin_keys.h"
#include "framework/config/schema.h"

namespace mulligan {

// One plugin table ([loss], [optimizer.matrices], ...) as written: the host's keys resolved, the plugin's
// keys kept for resolve_plugin_keys, when the plugin has been found and has declared its keys.
struct PluginTable {
  std::string section;      // full dotted name, for example "optimizer.matrices"
  std::string plugin;       // the plugin's name; empty only when `path` alone was given
  std::string path;         // absolute path of the library; empty: found by name on the search path
  std::string stored_path;  // a library that stored data named, which is not loaded (stored_paths.h)
  Settings host;            // plugin, path, and what else the host reads in this table (an optimizer's lr)
  ConfigNode keys;          // the rest
  std::string source;       // the configuration's file, for messages
};

// The file that a setting names, absolute: a relative one is taken from the folder of the file that says it;
// empty stays empty.
std::string absolute_file(const Setting& setting);

// The host's keys of every plugin table: plugin and path. `default_plugin` empty: there is none.
std::vector<KeySpec> plugin_table_keys(const std::string& default_plugin,
                                       std::span<const KeySpec> extra = {});

// Splits `table` (null: not written) into the host's keys and the plugin's. `default_plugin` stands where
// neither plugin nor path is given; empty: one of them is then required. `elsewhere` are members that belong to other
// schemas, `extra` further keys of the host. A relative path is taken from the folder of the file that says it.
PluginTable read_plugin_table(const ConfigNode* table, const std::string& section, const std::string& source,
                              const std::string& default_plugin, std::span<const std::string> elsewhere = {},
                              std::span<const KeySpec> extra = {});

// The same; further keys of the host are those of T, which are stored in `host`.
template <typename T>
PluginTable read_plugin_table_with(T& host, const ConfigNode* table, const std::string& section,
                                   const std::string& source, const std::string& default_plugin,
                                   std::span<const std::string> elsewhere = {}) {
  const Schema<T>& schema = schema_of<T>();
  PluginTable read = read_plugin_table(table, section, source, default_plugin, elsewhere, schema.keys());
  schema.store(read.host, host);
  return read;
}

// KeySpec rows of a plugin's declared keys. Throws config_error naming `plugin` when a row is broken: no
// name, an unknown type, a default that is not TOML text of that type or lies outside the row's own
// range or choices.
std::vector<KeySpec> key_specs(const std::string& plugin, std::span<const mlg_key> keys);

// Checks a table's keys against the plugin's rows. Errors as resolve_keys; besides, a row named like a key of
// the host in this table is the plugin's mistake.
PluginConfig resolve_plugin_keys(const PluginTable& table, const std::string& plugin,
                                 std::span<const KeySpec> rows);

}  // namespace mulligan
