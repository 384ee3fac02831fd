// The signature of a kernel (include/mulligan/kernel.h), read by the tests with a parser
// of their own.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mulligan::kernel_test {

struct Parameter {
  std::string name;
  bool read = false;     // `in` or `inout`
  bool written = false;  // `out` or `inout`
  bool optional = false;
  bool operator==(const Parameter&) const = default;
};

struct Signature {
  std::vector<Parameter> arguments;
  std::vector<std::string> attributes;

  // Null when there is no argument of that name.
  const Parameter* find(const std::string& name) const;
  bool has_attribute(const std::string& name) const;
  bool operator==(const Signature&) const = default;
};

// Throws std::invalid_argument on text that does not follow kernel.h.
Signature parse_signature(const std::string& text);

}  // namespace mulligan::kernel_test
