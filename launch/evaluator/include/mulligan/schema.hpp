// Takes the place of include/mulligan/schema.hpp in an evaluation, where quantize has checked ranges and choices.
#pragma once

#include <mulligan/config.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

template <typename Config>
struct Key {
  Key range(double, double) const { return *this; }
  Key at_least(double) const { return *this; }
  Key choices(const char*) const { return *this; }
  Key required() const { return *this; }

  mlg_key row{};
  std::function<void(const mlg_config&, Config&)> read;
};

template <typename Config, typename T>
Key<Config> key(const char* name, T Config::*member, const char*) {
  const auto made = [&](std::int32_t type, auto get) {
    return Key<Config>{{name, type},
                       [=](const mlg_config& config, Config& out) { get(config, out.*member); }};
  };
  if constexpr (std::same_as<T, bool>) {
    return made(MLG_KEY_BOOL, [=](auto& config, T& out) { out = config.get_bool(config.self, name) != 0; });
  } else if constexpr (std::integral<T>) {
    return made(MLG_KEY_INT,
                [=](auto& config, T& out) { out = static_cast<T>(config.get_int(config.self, name)); });
  } else if constexpr (std::floating_point<T>) {
    return made(MLG_KEY_FLOAT,
                [=](auto& config, T& out) { out = static_cast<T>(config.get_float(config.self, name)); });
  } else if constexpr (std::same_as<T, std::string>) {
    return made(MLG_KEY_STRING, [=](auto& config, T& out) { out = config.get_string(config.self, name); });
  } else {
    return made(MLG_KEY_FLOAT_LIST, [=](auto& config, T& out) {
      const double* values = nullptr;
      const std::uint32_t count = config.get_float_list(config.self, name, &values);
      out.assign(values, values + count);
    });
  }
}

template <typename Config>
struct Schema {
  Schema(std::initializer_list<Key<Config>> keys) : keys_(keys) {
    for (const Key<Config>& key : keys_) rows_.push_back(key.row);
  }

  const std::vector<mlg_key>& rows() const { return rows_; }

  Config read(const mlg_config& config) const {
    Config result{};
    for (const Key<Config>& key : keys_) key.read(config, result);
    return result;
  }

  std::vector<Key<Config>> keys_;
  std::vector<mlg_key> rows_;
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
