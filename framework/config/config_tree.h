// ConfigNode: the tree of one configuration after reading, extending and overriding, before any schema
// looked at it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/config/value.h"

namespace mulligan {

struct ConfigMember;

// A leaf with a value, a table of named nodes, or a list of tables ([[name]] in TOML).
struct ConfigNode {
  enum class Kind { leaf, table, table_list };

  Kind kind = Kind::table;
  ConfigValue value;  // leaf
  std::string raw;    // leaf from --set: the text as typed, so that a string key may take 42 or true
  std::vector<ConfigMember> members;  // table, in order of first appearance
  std::vector<ConfigNode> rows;       // table_list
  Origin origin;                      // where this node was last written

  static ConfigNode make_leaf(ConfigValue value, Origin origin, std::string raw = {});
  static ConfigNode make_table(Origin origin);

  bool is_leaf() const { return kind == Kind::leaf; }
  bool is_table() const { return kind == Kind::table; }

  // The direct member `name`, or null. Precondition: none (anything but a table has no members).
  const ConfigNode* find(std::string_view name) const;
  ConfigNode* find(std::string_view name);
  // The node at a dotted path below this table, or null.
  const ConfigNode* find_path(std::string_view path) const;
  ConfigNode* find_path(std::string_view path);
  // Adds or replaces a direct member.
  ConfigNode& put(std::string_view name, ConfigNode node);
  // Removes a direct member if present.
  void remove(std::string_view name);
};

struct ConfigMember {
  std::string name;
  ConfigNode node;
};

// The list of rows [[path]] in `tree`; null where there is none. Throws config_error where it is not such a list.
const ConfigNode* find_rows(const ConfigNode& tree, const std::string& path);

// Lays `over` on top of `base`: tables merge member by member, anything else (also lists) is replaced. A
// table that names another plugin (`plugin` or `path` differs from base's) replaces the base's table whole,
// since the old plugin's keys mean nothing to the new one; lists of tables in it, which are the host's, stay.
// A table with numeric names laid over a list of tables (from `--set parameters.0.optimizer=...`) changes
// those rows; throws config_error where such a row does not exist.
void merge(ConfigNode& base, ConfigNode over, const std::string& path = {});

}  // namespace mulligan
