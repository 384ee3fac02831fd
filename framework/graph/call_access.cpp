#include "framework/graph/call_access.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

namespace mulligan {

CallAccess::CallAccess(const Backend& backend) {
  for (std::uint32_t i = 0; const mlg_kernel* kernel = backend.kernel_at(i); ++i) {
    const std::string_view signature = kernel->signature;
    std::vector<Parameter>& parameters = kernels_[kernel->name];
    std::istringstream arguments(std::string(signature.substr(0, signature.find(';'))));
    for (std::string item; std::getline(arguments, item, ',');) {
      Parameter parameter;
      std::istringstream(item) >> parameter.direction >> parameter.name;
      if (parameter.direction.ends_with('?')) parameter.direction.pop_back();
      parameters.push_back(std::move(parameter));
    }
  }
}

std::vector<Access> CallAccess::of(const Call& call) const {
  const auto known = kernels_.find(call.kernel);
  if (known == kernels_.end()) {
    throw std::logic_error(fmt::format("the signature of kernel '{}' is not known", call.kernel));
  }
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Parameter& parameter = known->second.at(i);
    Access access;
    if (call.arguments[i]) {
      access.written = parameter.direction != "in";
      const bool keeps = call.attribute("accumulate_" + parameter.name, call.attribute("beta", 1)) != 0;
      access.read = parameter.direction == "in" || (parameter.direction == "inout" && keeps);
    }
    accesses.push_back(access);
  }
  return accesses;
}

}  // namespace mulligan
