#include "plugins/backends/common/kernel_signature.h"

#include <set>
#include <sstream>
#include <stdexcept>

namespace mulligan::backends {

Signature parse_signature(const std::string& kernel, const std::string& text) {
  const auto fail = [&](const std::string& why) -> std::runtime_error {
    return std::runtime_error("kernel " + kernel + ": its signature '" + text + "' " + why +
                              "; write it like \"in x, inout? y; scale eps\"");
  };
  const std::size_t semicolon = text.find(';');
  Signature signature;
  std::set<std::string> names;

  std::istringstream arguments(text.substr(0, semicolon));
  for (std::string item; std::getline(arguments, item, ',');) {
    std::istringstream words(item);
    std::string direction, surplus;
    Parameter parameter;
    if (!(words >> direction >> parameter.name) || (words >> surplus)) {
      throw fail("has the argument '" + item + "' that is not a direction and a name");
    }
    if (direction.back() == '?') {
      parameter.optional = true;
      direction.pop_back();
    }
    if (direction == "in") {
      parameter.direction = Direction::in;
    } else if (direction == "out") {
      parameter.direction = Direction::out;
    } else if (direction == "inout") {
      parameter.direction = Direction::inout;
    } else {
      throw fail("has the unknown direction '" + direction + "'");
    }
    if (!names.insert(parameter.name).second) throw fail("repeats the name '" + parameter.name + "'");
    signature.arguments.push_back(std::move(parameter));
  }
  if (signature.arguments.empty()) throw fail("has no argument");

  if (semicolon != std::string::npos) {
    std::istringstream attributes(text.substr(semicolon + 1));
    for (std::string name; attributes >> name;) {
      if (!names.insert(name).second) throw fail("repeats the name '" + name + "'");
      signature.attributes.push_back(name);
    }
  }
  return signature;
}

}  // namespace mulligan::backends
