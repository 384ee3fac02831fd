#include "framework/config/value.h"

#include <fmt/format.h>

namespace mulligan {
namespace {

std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  // TOML tells reals from integers by their form.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

template <typename List, typename Text>
std::string list_text(const List& list, Text text_of) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ", ") + text_of(list[i]);
  return text + "]";
}

}  // namespace

std::string_view describe(ValueType type) {
  switch (type) {
    case ValueType::boolean:
      return "true or false";
    case ValueType::integer:
      return "an integer";
    case ValueType::real:
      return "a number";
    case ValueType::string:
      return "a string";
    case ValueType::real_list:
      return "a list of numbers";
    case ValueType::string_list:
      return "a list of strings";
  }
  return "a value";
}

std::string_view short_name(ValueType type) {
  switch (type) {
    case ValueType::boolean:
      return "bool";
    case ValueType::integer:
      return "int";
    case ValueType::real:
      return "float";
    case ValueType::string:
      return "string";
    case ValueType::real_list:
      return "float list";
    case ValueType::string_list:
      return "string list";
  }
  return "value";
}

std::string toml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          quoted += c;
        }
    }
  }
  return quoted + "\"";
}

std::string to_toml(const ConfigValue& value) {
  switch (value.type()) {
    case ValueType::boolean:
      return value.boolean() ? "true" : "false";
    case ValueType::integer:
      return fmt::format("{}", value.integer());
    case ValueType::real:
      return real_text(value.real());
    case ValueType::string:
      return toml_quoted(value.string());
    case ValueType::real_list:
      return list_text(value.reals(), real_text);
    case ValueType::string_list:
      return list_text(value.strings(), toml_quoted);
  }
  return {};
}

bool convert(const ConfigValue& value, ValueType type, ConfigValue& converted) {
  if (value.type() == type) {
    converted = value;
  } else if (type == ValueType::real && value.type() == ValueType::integer) {
    converted = ConfigValue(static_cast<double>(value.integer()));
  } else if (type == ValueType::real_list && value == ConfigValue(ConfigValue::Strings{})) {
    converted = ConfigValue(ConfigValue::Reals{});
  } else if (type == ValueType::string_list && value == ConfigValue(ConfigValue::Reals{})) {
    converted = ConfigValue(ConfigValue::Strings{});
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

}  // namespace mulligan
