// Values of configuration keys for the members of a struct. Part of schema.hpp.
#pragma once

#include <mulligan/config.h>

#include <concepts>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk::detail {

// T: bool, an integer, float or double, std::string, std::vector<double>.
template <typename T>
constexpr mlg_key_type key_type_of() {
  if constexpr (std::same_as<T, bool>) return MLG_KEY_BOOL;
  if constexpr (std::integral<T> && !std::same_as<T, bool>) return MLG_KEY_INT;
  if constexpr (std::floating_point<T>) return MLG_KEY_FLOAT;
  if constexpr (std::same_as<T, std::string>) return MLG_KEY_STRING;
  if constexpr (std::same_as<T, std::vector<double>>) return MLG_KEY_FLOAT_LIST;
}

template <typename T>
void read_key(const mlg_config& config, const char* name, T& value) {
  const mlg_setting setting = config.get(config.self, name, key_type_of<T>());
  if constexpr (std::integral<T>) {
    value = static_cast<T>(setting.integer);
  } else if constexpr (std::floating_point<T>) {
    value = static_cast<T>(setting.number);
  } else if constexpr (std::same_as<T, std::string>) {
    value = setting.text;
  } else {
    value.assign(setting.list, setting.list + setting.count);
  }
}

}  // namespace mulligan::sdk::detail

#pragma GCC visibility pop
