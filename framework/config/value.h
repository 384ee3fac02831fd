// ConfigValue: one configuration value, and Origin: where it came from. No TOML library in sight.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mulligan {

// What a key may hold. An integer is accepted wherever a real number is asked for.
enum class ValueType { boolean, integer, real, string, real_list, string_list };

// "true or false", "an integer", ... for sentences and the reference.
std::string_view describe(ValueType type);
// "bool", "int", "float", "string", "float list", "string list": the column of the reference.
std::string_view short_name(ValueType type);

class ConfigValue {
 public:
  using Reals = std::vector<double>;
  using Strings = std::vector<std::string>;

  ConfigValue() = default;  // false
  template <typename T>
  explicit ConfigValue(T v) : data_(std::move(v)) {}

  ValueType type() const { return static_cast<ValueType>(data_.index()); }

  // The value as the named type. Precondition: type() is that type (std::bad_variant_access otherwise).
  template <typename T>
  const T& as() const {
    return std::get<T>(data_);
  }
  const std::string& string() const { return as<std::string>(); }
  template <typename Visitor>
  auto visit(Visitor&& visitor) const {
    return std::visit(visitor, data_);
  }

  bool operator==(const ConfigValue&) const = default;

 private:
  std::variant<bool, int64_t, double, std::string, Reals, Strings> data_;  // order of ValueType
};

// The value in TOML syntax; reading it back gives the same value (reals: shortest text that does).
std::string to_toml(const ConfigValue& value);
// A string in TOML's basic quotes, control characters escaped.
std::string toml_quoted(std::string_view text);

// Converts `value` to `type` where nothing is lost: same type, integer to real, empty list to any list.
// Returns false, leaving `converted` alone, where the types do not fit.
bool convert(const ConfigValue& value, ValueType type, ConfigValue& converted);

// Where a setting was made.
struct Origin {
  // stored: a path in a configuration that came with data, which is not followed (stored_paths.h).
  enum class Kind { defaulted, derived, file, command_line, stored };
  Kind kind = Kind::defaulted;
  std::string file;  // as the user named it; of a derived one: what from, or empty; else empty
  int line = 0;

  // Of a command-line option; empty: --set.
  static Origin command_line(std::string option = {}) { return {Kind::command_line, std::move(option), 0}; }
  static Origin derived(std::string from = {}) { return {Kind::derived, std::move(from), 0}; }
  // "configs/x.toml:12", "--set", "default", "derived".
  std::string text() const;
};

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
