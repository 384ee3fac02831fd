// Configuration keys bound to the members of a struct. Each key is declared once.
//
//   struct Config { double momentum = 0.9; std::string coefficients = "polar"; double lr; };
//   static inline const sdk::Schema<Config> schema{
//       sdk::key("momentum", &Config::momentum, "decay of the momentum buffer per step").range(0, 1),
//       sdk::key("coefficients", &Config::coefficients, "which polynomial").choices("polar|plain"),
//       sdk::key("lr", &Config::lr, "learning rate").required()};
//
// The default of a key is the struct's own member initialiser. Declare the struct outside the plugin class
// (C++ cannot use the initialisers of a nested struct before the enclosing class is complete).
#pragma once

#include <mulligan/key_values.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

namespace detail {

inline std::string toml(bool value) {
  return value ? "true" : "false";
}
template <typename T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) std::string toml(T value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string result(text, end);
  if constexpr (std::floating_point<T>) {
    if (std::isfinite(value) && result.find_first_of(".e") == std::string::npos) result += ".0";
  }
  return result;
}
inline std::string toml(const std::string& value) {
  std::string result = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}
inline std::string toml(const std::vector<double>& values) {
  std::string result = "[";
  for (const double value : values) result += (result.size() > 1 ? ", " : "") + toml(value);
  return result + "]";
}

}  // namespace detail

// One key. Strings passed in must be literals.
template <typename Config>
class Key {
 public:
  // Inclusive bounds of a number or of each number of a list.
  Key& range(double minimum, double maximum) {
    row_.minimum = minimum;
    row_.maximum = maximum;
    return *this;
  }
  Key& at_least(double minimum) { return range(minimum, HUGE_VAL); }
  // The allowed words of a string, separated by '|'.
  Key& choices(const char* words) {
    row_.choices = words;
    return *this;
  }
  // No default: the user must set it.
  Key& required() {
    required_ = true;
    return *this;
  }

 private:
  template <typename>
  friend class Schema;
  template <typename C, typename T>
  friend Key<C> key(const char* name, T C::*member, const char* help);

  mlg_key row_{};
  bool required_ = false;
  std::string default_text_;
  std::function<void(const mlg_config&, Config&)> read_;
};

// T: bool, an integer, float or double, std::string, std::vector<double>. `help`: one sentence with the unit.
template <typename Config, typename T>
Key<Config> key(const char* name, T Config::*member, const char* help) {
  Key<Config> result;
  result.row_ = {name, detail::key_type_of<T>(), nullptr, -HUGE_VAL, HUGE_VAL, nullptr, help};
  if constexpr (std::integral<T> && sizeof(T) < sizeof(std::int64_t) && !std::same_as<T, bool>) {
    // The range of the member's type, so that no value is truncated.
    result.row_.minimum = static_cast<double>(std::numeric_limits<T>::min());
    result.row_.maximum = static_cast<double>(std::numeric_limits<T>::max());
  }
  result.default_text_ = detail::toml(Config{}.*member);
  result.read_ = [name, member](const mlg_config& config, Config& out) {
    detail::read_key(config, name, out.*member);
  };
  return result;
}

// The keys of a plugin, in the order in which they are listed for the user. Lives as long as the library.
template <typename Config>
class Schema {
 public:
  Schema(std::initializer_list<Key<Config>> keys) : keys_(keys) {
    for (const Key<Config>& key : keys_) {
      rows_.push_back(key.row_);
      if (!key.required_) rows_.back().default_value = key.default_text_.c_str();
    }
  }
  Schema(const Schema&) = delete;  // rows() points into keys_
  Schema& operator=(const Schema&) = delete;

  const std::vector<mlg_key>& rows() const { return rows_; }

  // The struct filled with the resolved values; every key has one by then.
  Config read(const mlg_config& config) const {
    Config result{};
    for (const Key<Config>& key : keys_) key.read_(config, result);
    return result;
  }

 private:
  std::vector<Key<Config>> keys_;
  std::vector<mlg_key> rows_;
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
