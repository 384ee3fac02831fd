// Keys declared once: from the declaration come parsing, type and range checks, the unknown-key error,
// printing and the reference. `Schema<T>` binds keys to a struct; plugins' keys arrive at run time as plain
// KeySpec rows (see plugin_config.h). Both go through resolve_keys.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/config/config_tree.h"
#include "framework/config/settings.h"
#include "framework/config/value.h"

namespace mulligan {

// The declaration of one key.
struct KeySpec {
  std::string name;  // dotted, relative to the table it is declared for
  ValueType type = ValueType::boolean;
  bool required = false;
  ConfigValue default_value;  // of `type`; meaningless when required
  std::string derived;        // how the default is computed, for keys whose default follows from others
  double minimum =
      -std::numeric_limits<double>::infinity();  // inclusive; for integers, reals and list members
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  // allowed words of a string; empty = any
  std::string help;                  // one sentence, with the unit
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

// Refines the key declared last: schema.key(...).range(1, 128).
class KeyDeclaration {
 public:
  explicit KeyDeclaration(KeySpec& key) : key_(key) {}
  KeyDeclaration& range(double minimum, double maximum) {
    key_.minimum = minimum;
    key_.maximum = maximum;
    return *this;
  }
  KeyDeclaration& at_least(double minimum) {
    key_.minimum = minimum;
    return *this;
  }
  // A text that is one of these words.
  KeyDeclaration& one_of(std::vector<std::string> words) {
    key_.choices = std::move(words);
    return *this;
  }
  KeyDeclaration& required() {
    key_.required = true;
    return *this;
  }
  // The default is computed from other keys, as `how` says, after the struct has been
  // filled (see Schema::refresh).
  KeyDeclaration& derived(std::string how) {
    key_.derived = std::move(how);
    return *this;
  }

 private:
  KeySpec& key_;
};

// The keys of struct T. A key's default is the member's initialiser in a default-constructed T.
template <typename T>
class Schema {
 public:
  // Member types: bool, int64_t, double, std::string, std::vector<double>, std::vector<std::string>.
  template <typename M>
  KeyDeclaration key(std::string name, M T::*member, std::string help) {
    return declare(
        std::move(name), std::move(help), [member](const T& object) { return ConfigValue(object.*member); },
        [member](T& object, const ConfigValue& value) { assign(object.*member, value); });
  }

  // An enumeration, written as one of the words given.
  template <typename E>
  KeyDeclaration choice(std::string name, E T::*member, std::vector<std::pair<std::string, E>> words,
                        std::string help) {
    std::vector<std::string> choices;
    for (const auto& [word, value] : words) choices.push_back(word);
    KeyDeclaration declaration = declare(
        std::move(name), std::move(help),
        [member, words](const T& object) {
          for (const auto& [word, value] : words) {
            if (value == object.*member) return ConfigValue(word);
          }
          return ConfigValue(std::string());
        },
        [member, words](T& object, const ConfigValue& value) {
          for (const auto& [word, meaning] : words) {
            if (word == value.string()) object.*member = meaning;
          }
        });
    keys_.back().choices = std::move(choices);
    return declaration;
  }

  // Includes the keys of a member struct under the table `name`; with an empty name, in this table.
  template <typename S>
  void section(const std::string& name, S T::*member, const Schema<S>& inner) {
    for (size_t i = 0; i < inner.keys().size(); ++i) {
      keys_.push_back(inner.keys()[i]);
      if (!name.empty()) keys_.back().name = name + "." + keys_.back().name;
      const auto& binding = inner.bindings()[i];
      bindings_.push_back(
          {[member, get = binding.get](const T& object) { return get(object.*member); },
           [member, set = binding.set](T& object, const ConfigValue& value) { set(object.*member, value); }});
    }
  }

  // Includes the keys of `other` for which `chosen` holds, in their order.
  template <typename Chosen>
  void include(const Schema& other, Chosen chosen) {
    for (size_t i = 0; i < other.keys_.size(); ++i) {
      if (chosen(other.keys_[i])) bind(other.keys_[i], other.bindings_[i]);
    }
  }

  // Writes resolved settings (of exactly these keys) into `object`.
  void store(const Settings& settings, T& object) const {
    for (size_t i = 0; i < keys_.size(); ++i) bindings_[i].set(object, settings.at(keys_[i].name).value);
  }

  // The same, but `object` keeps its values for keys that were not written.
  void store_written(const Settings& settings, T& object) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      const Setting& setting = settings.at(keys_[i].name);
      if (setting.origin.kind != Origin::Kind::defaulted) bindings_[i].set(object, setting.value);
    }
  }

  // Takes values that were derived after store() back into `settings`, with the origin "derived".
  void refresh(const T& object, Settings& settings) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      Setting& setting = settings.all()[i];
      ConfigValue now = bindings_[i].get(object);
      if (now == setting.value) continue;
      setting.value = std::move(now);
      setting.origin = Origin{Origin::Kind::derived, {}, 0};
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
  static void assign(bool& member, const ConfigValue& value) { member = value.boolean(); }
  static void assign(int64_t& member, const ConfigValue& value) { member = value.integer(); }
  static void assign(double& member, const ConfigValue& value) { member = value.real(); }
  static void assign(std::string& member, const ConfigValue& value) { member = value.string(); }
  static void assign(ConfigValue::Reals& member, const ConfigValue& value) { member = value.reals(); }
  static void assign(ConfigValue::Strings& member, const ConfigValue& value) { member = value.strings(); }

  KeyDeclaration declare(std::string name, std::string help, std::function<ConfigValue(const T&)> get,
                         std::function<void(T&, const ConfigValue&)> set) {
    KeySpec& key = keys_.emplace_back();
    key.name = std::move(name);
    key.help = std::move(help);
    key.default_value = get(T{});
    key.type = key.default_value.type();
    bindings_.push_back({std::move(get), std::move(set)});
    return KeyDeclaration(key);
  }

  std::vector<KeySpec> keys_;
  std::vector<Binding> bindings_;
};

}  // namespace mulligan
