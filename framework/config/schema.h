// Keys declared once: from the declaration come parsing, type and range checks, the unknown-key error,
// printing and the reference. `Schema<T>` binds keys to a struct; plugins' keys arrive at run time as plain
// KeySpec rows (see plugin_config.h). Both go through resolve_keys.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/config/config_tree.h"
#include "framework/config/value.h"
#include "framework/config/words.h"

namespace mulligan {

// The declaration of one key, refined as schema.key(...).range(1, 128).
struct KeySpec {
  std::string name;  // dotted, relative to the table it is declared for
  ValueType type = ValueType::boolean;
  bool is_required = false;
  ConfigValue default_value;  // of `type`; meaningless when required
  std::string derivation;     // how the default is computed, for keys whose default follows from others
  double minimum =
      -std::numeric_limits<double>::infinity();  // inclusive; for integers, reals and list members
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  // allowed words of a string; empty = any
  std::string help;                  // one sentence, with the unit

  KeySpec& range(double least, double most) {
    maximum = most;
    return at_least(least);
  }
  KeySpec& at_least(double least) {
    minimum = least;
    return *this;
  }
  KeySpec& one_of(std::vector<std::string> words) {
    choices = std::move(words);
    return *this;
  }
  KeySpec& required() {
    is_required = true;
    return *this;
  }
  // The default is computed after the struct has been filled (see Schema::refresh).
  KeySpec& derived(std::string how) {
    derivation = std::move(how);
    return *this;
  }
};

// Checks `table` (null: nothing was written) against `keys` and fills in the defaults. `path` is the table's
// full name. Members named in `elsewhere` belong to other schemas and are left alone. Throws config_error,
// with the origin, for an unknown key (naming the nearest known one), a wrong type, a value out of range or
// not among the choices, and a required key that is missing (`source` says which file lacks it).
Settings resolve_keys(std::span<const KeySpec> keys, const ConfigNode* table, const std::string& path,
                      const std::string& source, std::span<const std::string> elsewhere = {});

// The member of `candidates` with the smallest Levenshtein distance to `name`, or "" when none resembles it
// (more than half of the longer name would have to change).
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// The allowed values of a key in words: "1 to 128", ">= 0", "fp32, bf16", or "" for any.
std::string allowed_values(const KeySpec& key);

template <typename T>
class Schema;

// The keys of struct T. `void declare_keys(Schema<T>& schema)` declares them, in T's namespace.
template <typename T>
const Schema<T>& schema_of() {
  static const Schema<T> schema = [] {
    Schema<T> declared;
    declare_keys(declared);
    return declared;
  }();
  return schema;
}

// A key's default is the member's initialiser in a default-constructed T.
template <typename T>
class Schema {
 public:
  // Member types: bool, int64_t, double, std::string, std::vector<double>, std::vector<std::string>, and enumerations.
  template <typename M>
  KeySpec& key(std::string name, M T::*member, std::string help) {
    KeySpec key;
    key.name = std::move(name);
    key.help = std::move(help);
    key.default_value = value_of(T().*member);
    key.type = key.default_value.type();
    if constexpr (std::is_enum_v<M>) {
      for (const char* word : config_words<M>) key.choices.emplace_back(word);
    }
    bind(std::move(key), {[member](const T& object) { return value_of(object.*member); },
                          [member](T& object, const ConfigValue& value) { set(object.*member, value); }});
    return keys_.back();
  }

  // Includes the keys of a member struct under the table `name`; with an empty name, in this table.
  template <typename S>
  void section(const std::string& name, S T::*member) {
    const Schema<S>& inner = schema_of<S>();
    for (size_t i = 0; i < inner.keys().size(); ++i) {
      KeySpec key = inner.keys()[i];
      if (!name.empty()) key.name = name + "." + key.name;
      const auto& binding = inner.bindings()[i];
      bind(std::move(key), {[member, get = binding.get](const T& object) { return get(object.*member); },
                            [member, set = binding.set](T& object, const ConfigValue& value) {
                              set(object.*member, value);
                            }});
    }
  }

  // Writes resolved settings (of exactly these keys) into `object`. A derived key that is not written keeps its value.
  void store(const Settings& settings, T& object) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      const Setting& setting = settings.at(keys_[i].name);
      const bool written = setting.origin.kind != Origin::Kind::defaulted;
      if (written || keys_[i].derivation.empty()) bindings_[i].set(object, setting.value);
    }
  }

  // Takes values that were derived after store() back into `settings`, with the origin "derived".
  void refresh(const T& object, Settings& settings) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      Setting& setting = settings.all()[i];
      ConfigValue now = bindings_[i].get(object);
      if (now == setting.value) continue;
      setting.value = std::move(now);
      setting.origin = Origin::derived();
    }
  }

  struct Binding {
    std::function<ConfigValue(const T&)> get;
    std::function<void(T&, const ConfigValue&)> set;
  };
  const std::vector<KeySpec>& keys() const { return keys_; }
  const std::vector<Binding>& bindings() const { return bindings_; }

  // A key whose value is not a plain member.
  void bind(KeySpec key, Binding binding) {
    keys_.push_back(std::move(key));
    bindings_.push_back(std::move(binding));
  }

 private:
  template <typename M>
  static ConfigValue value_of(const M& member) {
    if constexpr (std::is_enum_v<M>) {
      return ConfigValue(word_of(member));
    } else {
      return ConfigValue(member);
    }
  }
  template <typename M>
  static void set(M& member, const ConfigValue& value) {
    if constexpr (std::is_enum_v<M>) {
      member = of_word<M>(value.string()).value_or(member);
    } else {
      member = value.as<M>();
    }
  }

  std::vector<KeySpec> keys_;
  std::vector<Binding> bindings_;
};

// Resolves `table` by the keys of T and stores them in `object`.
template <typename T>
Settings read_keys(T& object, const ConfigNode* table, const std::string& path, const std::string& source,
                   std::span<const std::string> elsewhere = {}) {
  Settings settings = resolve_keys(schema_of<T>().keys(), table, path, source, elsewhere);
  schema_of<T>().store(settings, object);
  return settings;
}

}  // namespace mulligan
