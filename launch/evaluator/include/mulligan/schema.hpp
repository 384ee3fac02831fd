// Takes the place of include/mulligan/schema.hpp in an evaluation, where quantize has checked ranges and choices.
#pragma once

#include <mulligan/key_values.hpp>

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
  return {{name, detail::key_type_of<T>()},
          [=](const mlg_config& config, Config& out) { detail::read_key(config, name, out.*member); }};
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
