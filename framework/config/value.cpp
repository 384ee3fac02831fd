#include "framework/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mulligan {
namespace {

struct TomlText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    const std::string text = fmt::format("{}", value);
    // TOML tells reals from integers by their form.
    return text.find_first_of(".en") == text.npos ? text + ".0" : text;
  }
  std::string operator()(const std::string& value) const { return toml_quoted(value); }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    std::string text;
    for (const T& value : list) text += (text.empty() ? "" : ", ") + (*this)(value);
    return "[" + text + "]";
  }
};

}  // namespace

std::string_view describe(ValueType type) {
  constexpr std::string_view words[] = {"true or false", "an integer",        "a number",
                                        "a string",      "a list of numbers", "a list of strings"};
  return words[static_cast<int>(type)];
}

std::string_view short_name(ValueType type) {
  constexpr std::string_view words[] = {"bool", "int", "float", "string", "float list", "string list"};
  return words[static_cast<int>(type)];
}

std::string toml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c == '\n' || c == '\t') {
      quoted += c == '\n' ? "\\n" : "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string to_toml(const ConfigValue& value) {
  return value.visit(TomlText());
}

bool convert(const ConfigValue& value, ValueType type, ConfigValue& converted) {
  if (value.type() == type) {
    converted = value;
  } else if (type == ValueType::real && value.type() == ValueType::integer) {
    converted = ConfigValue(static_cast<double>(value.as<int64_t>()));
  } else if (type == ValueType::real_list && value == ConfigValue(ConfigValue::Strings{})) {
    converted = ConfigValue(ConfigValue::Reals{});
  } else {
    return false;
  }
  return true;
}

std::string Origin::text() const {
  switch (kind) {
    case Kind::defaulted:
      return "default";
    case Kind::derived:
      return file.empty() ? "derived" : fmt::format("derived from {}", file);
    case Kind::command_line:
      return file.empty() ? "--set" : file;
    case Kind::file:
    case Kind::stored:
      return line > 0 ? fmt::format("{}:{}", file, line) : file;
  }
  return {};
}

const Setting* Settings::find(std::string_view name) const {
  const auto it = std::ranges::find(all_, name, &Setting::name);
  return it == all_.end() ? nullptr : &*it;
}

const Setting& Settings::at(std::string_view name) const {
  const Setting* setting = find(name);
  if (setting == nullptr) throw std::logic_error("undeclared configuration key: " + full_name(name));
  return *setting;
}

std::string Settings::full_name(std::string_view name) const {
  return table_.empty() ? std::string(name) : fmt::format("{}.{}", table_, name);
}

std::string Settings::where(std::string_view name) const {
  return fmt::format("'{}' ({})", full_name(name), at(name).origin.text());
}

}  // namespace mulligan
