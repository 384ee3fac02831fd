// The members of a struct, described once, by which it is written as JSON and read back:
//
//   template <typename Fields>
//   void describe(Fields& fields, ShardRecord& shard) {
//     fields("file", shard.file)("tokens", shard.tokens).maybe("bytes_file", shard.bytes_file);
//   }
//
// `describe` stands next to its struct. Members are truth values, texts, counts (integers of 0 or more), numbers,
// described structs, std::optional, lists, and lists or maps of named values, which are objects.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace mulligan {

template <typename T>
concept NamedValues = requires {
  typename T::value_type::second_type;
};
template <typename T>
concept OptionalValue = requires(T value) {
  value.has_value();
};
template <typename T>
concept ListOfValues = requires(T value) {
  value.emplace_back();
};

class FieldWriter {
 public:
  using Json = nlohmann::ordered_json;

  template <typename T>
  FieldWriter& operator()(const char* key, T& value) {
    json_[key] = written(key, value);
    return *this;
  }
  // Left out where it has its default.
  template <typename T>
  FieldWriter& maybe(const char* key, T& value) {
    if constexpr (OptionalValue<T>) {
      return value ? (*this)(key, value) : *this;
    } else {
      return value == T{} ? *this : (*this)(key, value);
    }
  }
  // An object of further members of the same struct.
  template <typename Members>
  FieldWriter& object(const char* key, Members&& members) {
    FieldWriter inner;
    members(inner);
    json_[key] = std::move(inner.json_);
    return *this;
  }
  // A value that has its own functions.
  template <typename T, typename To, typename From>
  FieldWriter& custom(const char* key, T& value, To&& to, From&&) {
    json_[key] = to(value);
    return *this;
  }
  Json take() { return std::move(json_); }

 private:
  template <typename T>
  static Json written(const std::string& key, T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value))
        throw std::invalid_argument(fmt::format("'{}' is {}, which is not a number", key, value));
      return value;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (OptionalValue<T>) {
      return written(key, *value);
    } else if constexpr (NamedValues<T>) {
      Json values = Json::object();
      for (auto& [name, one] : value) values[name] = written(name, one);
      return values;
    } else if constexpr (ListOfValues<T>) {
      Json values = Json::array();
      for (auto& one : value) values.push_back(written(key, one));
      return values;
    } else {
      FieldWriter inner;
      describe(inner, value);
      return inner.take();
    }
  }

  Json json_ = Json::object();
};

// Throws std::invalid_argument, naming the member, for one that is missing or of another type.
class FieldReader {
 public:
  using Json = nlohmann::ordered_json;

  explicit FieldReader(const Json& json, std::string path = {}) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) throw std::invalid_argument(fmt::format("'{}' is not an object", path_));
  }

  template <typename T>
  FieldReader& operator()(const char* key, T& value) {
    read(at(key), value, path_ + key);
    return *this;
  }
  template <typename T>
  FieldReader& maybe(const char* key, T& value) {
    return json_.contains(key) ? (*this)(key, value) : *this;
  }
  template <typename Members>
  FieldReader& object(const char* key, Members&& members) {
    FieldReader inner(at(key), path_ + key + ".");
    members(inner);
    return *this;
  }
  template <typename T, typename To, typename From>
  FieldReader& custom(const char* key, T& value, To&&, From&& from) {
    value = from(at(key));
    return *this;
  }

 private:
  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) throw std::invalid_argument(fmt::format("'{}{}' is missing", path_, key));
    return *found;
  }

  template <typename T>
  static void read(const Json& json, T& value, const std::string& path) {
    const auto require = [&](bool holds, const char* expected) {
      if (!holds)
        throw std::invalid_argument(
            fmt::format("'{}' is {}, not {}", path, json.dump().substr(0, 40), expected));
    };
    if constexpr (std::is_same_v<T, bool>) {
      require(json.is_boolean(), "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      require(json.is_string(), "a text");
      value = json.get<std::string>();
    } else if constexpr (std::is_integral_v<T>) {
      require(json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>()),
              "a whole number of 0 or more");
      value = json.get<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
      require(json.is_number() && std::isfinite(json.get<double>()), "a number");
      value = json.get<T>();
    } else if constexpr (OptionalValue<T>) {
      read(json, value.emplace(), path);
    } else if constexpr (NamedValues<T>) {
      require(json.is_object(), "an object");
      value.clear();
      for (const auto& [name, one] : json.items()) {
        typename T::value_type::second_type element{};
        read(one, element, path + "." + name);
        value.insert(value.end(), {name, std::move(element)});
      }
    } else if constexpr (ListOfValues<T>) {
      require(json.is_array(), "a list");
      value.clear();
      for (const Json& one : json) read(one, value.emplace_back(), path);
    } else {
      FieldReader inner(json, path + ".");
      describe(inner, value);
    }
  }

  const Json& json_;
  std::string path_;
};

template <typename T>
nlohmann::ordered_json fields_to_json(T value) {  // a copy: members are described for both directions
  FieldWriter writer;
  describe(writer, value);
  return writer.take();
}
template <typename T>
T fields_from_json(const nlohmann::ordered_json& json) {
  T value;
  FieldReader reader(json);
  describe(reader, value);
  return value;
}

}  // namespace mulligan
