// The resolved keys of a table.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/config/value.h"

namespace mulligan {

// One resolved key.
struct Setting {
  std::string name;  // as in KeySpec
  ConfigValue value;
  Origin origin;
};

// Settings `a.b=value` from elsewhere than a file, and their origin, which messages name. It is never that of a default.
struct SettingsFrom {
  Origin origin = Origin::command_line();
  std::vector<std::string> settings;
};

// The resolved keys of one table, in declaration order.
class Settings {
 public:
  explicit Settings(std::string table = {}) : table_(std::move(table)) {}

  const std::string& table() const { return table_; }  // full dotted path; empty for the root
  const std::vector<Setting>& all() const { return all_; }
  std::vector<Setting>& all() { return all_; }
  void add(Setting setting) { all_.push_back(std::move(setting)); }
  const Setting* find(std::string_view name) const;
  // Throws std::logic_error when `name` was not declared.
  const Setting& at(std::string_view name) const;
  std::string full_name(std::string_view name) const;
  // "'model.heads' (configs/x.toml:12)", for sentences about several keys.
  std::string where(std::string_view name) const;

 private:
  std::string table_;
  std::vector<Setting> all_;
};

}  // namespace mulligan
