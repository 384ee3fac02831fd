// ConfigValue: one configuration value, and Origin: where it came from. No TOML library in sight.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

  ConfigValue() : data_(false) {}
  explicit ConfigValue(bool v) : data_(v) {}
  explicit ConfigValue(int64_t v) : data_(v) {}
  explicit ConfigValue(double v) : data_(v) {}
  explicit ConfigValue(std::string v) : data_(std::move(v)) {}
  explicit ConfigValue(const char* v) : data_(std::string(v)) {}
  explicit ConfigValue(Reals v) : data_(std::move(v)) {}
  explicit ConfigValue(Strings v) : data_(std::move(v)) {}

  ValueType type() const { return static_cast<ValueType>(data_.index()); }

  // The value as the named type. Precondition: type() is that type (std::bad_variant_access otherwise).
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const { return std::get<int64_t>(data_); }
  double real() const { return std::get<double>(data_); }
  const std::string& string() const { return std::get<std::string>(data_); }
  const Reals& reals() const { return std::get<Reals>(data_); }
  const Strings& strings() const { return std::get<Strings>(data_); }

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

  static Origin command_line() { return {Kind::command_line, {}, 0}; }
  // "configs/x.toml:12", "--set", "default", "derived".
  std::string text() const;
};

}  // namespace mulligan
