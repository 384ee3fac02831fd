#include "tests/kernels/signature.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace mulligan::kernel_test {

const Parameter* Signature::find(const std::string& name) const {
  const auto found =
      std::find_if(arguments.begin(), arguments.end(), [&](auto& p) { return p.name == name; });
  return found == arguments.end() ? nullptr : &*found;
}

bool Signature::has_attribute(const std::string& name) const {
  return std::find(attributes.begin(), attributes.end(), name) != attributes.end();
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

std::string to_text(const Signature& signature) {
  std::string text;
  for (const Parameter& parameter : signature.arguments) {
    text += text.empty() ? "" : ", ";
    text += parameter.read ? (parameter.written ? "inout" : "in") : "out";
    text += (parameter.optional ? "? " : " ") + parameter.name;
  }
  for (std::size_t i = 0; i < signature.attributes.size(); ++i) {
    text += (i == 0 ? "; " : " ") + signature.attributes[i];
  }
  return text;
}

}  // namespace mulligan::kernel_test
