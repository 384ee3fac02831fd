// The signature of a kernel ("in x, inout? y; scale eps") in parsed form.
#pragma once

#include <string>
#include <vector>

namespace mulligan::backends {

enum class Direction { in, out, inout };

struct Parameter {
  std::string name;
  Direction direction = Direction::in;
  bool optional = false;
};

struct Signature {
  std::vector<Parameter> arguments;
  std::vector<std::string> attributes;
};

// Throws std::runtime_error with a sentence that names `kernel` when the text does not follow kernel.h.
Signature parse_signature(const std::string& kernel, const std::string& text);

}  // namespace mulligan::backends
