#include "tests/kernels/signature.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace mulligan::kernel_test {

const Parameter* Signature::find(const std::string& name) const {
  const auto found = std::ranges::find(arguments, name, &Parameter::name);
  return found == arguments.end() ? nullptr : &*found;
}

bool Signature::has_attribute(const std::string& name) const {
  return std::ranges::find(attributes, name) != attributes.end();
}

Signature parse_signature(const std::string& text) {
  Signature signature;
  const std::size_t semicolon = text.find(';');
  std::istringstream arguments(text.substr(0, semicolon));
  for (std::string item; std::getline(arguments, item, ',');) {
    std::istringstream words(item);
    std::string direction, name, rest;
    if (!(words >> direction >> name) || words >> rest) {
      throw std::invalid_argument("signature \"" + text + "\": cannot read \"" + item + "\"");
    }
    Parameter parameter{.name = name};
    if (direction.back() == '?') {
      parameter.optional = true;
      direction.pop_back();
    }
    parameter.read = direction == "in" || direction == "inout";
    parameter.written = direction == "out" || direction == "inout";
    if (!parameter.read && !parameter.written) {
      throw std::invalid_argument("signature \"" + text + "\": unknown direction in \"" + item + "\"");
    }
    signature.arguments.push_back(parameter);
  }
  if (semicolon != std::string::npos) {
    std::istringstream attributes(text.substr(semicolon + 1));
    for (std::string name; attributes >> name;) signature.attributes.push_back(name);
  }
  return signature;
}

}  // namespace mulligan::kernel_test
