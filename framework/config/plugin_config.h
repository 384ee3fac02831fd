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

// The host's keys of every plugin table: plugin and path.
std::vector<KeySpec> plugin_table_keys();

// Splits `table` (null: not written) into the host's keys and the plugin's. `default_plugin` stands where
// neither plugin nor path is given; empty: one of them is then required. `extra` are further keys of the
// host, `elsewhere` members that belong to other schemas. A relative path is taken from the folder of the
// file that says it.
PluginTable read_plugin_table(const ConfigNode* table, const std::string& section, const std::string& source,
                              const std::string& default_plugin, std::span<const KeySpec> extra = {},
                              std::span<const std::string> elsewhere = {});

// KeySpec rows of a plugin's declared keys. Throws config_error naming `plugin` when a row is broken: no
// name, an unknown type, a default that is not TOML text of that type or lies outside the row's own
// range or choices.
std::vector<KeySpec> key_specs(const std::string& plugin, const mlg_key* keys, uint32_t count);

// Checks a table's keys against the plugin's rows. Errors as resolve_keys; besides, a row named like a key of
// the host in this table is the plugin's mistake.
PluginConfig resolve_plugin_keys(const PluginTable& table, const std::string& plugin,
                                 std::span<const KeySpec> rows);

}  // namespace mulligan
