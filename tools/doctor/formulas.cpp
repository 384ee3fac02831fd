#include "tools/doctor/formulas.h"

#include <algorithm>

#include "tools/doctor/formula_parts.h"

#include "kernel_formulas.inc"  // made by CMake: every formula.h of kernels, in mulligan::doctor

namespace mulligan::doctor {

std::map<std::string_view, Formula>& known_formulas() {
  static std::map<std::string_view, Formula> formulas;
  return formulas;
}

Formula formula_of(std::string_view kernel) {
  const auto found = known_formulas().find(kernel);
  return found == known_formulas().end() ? nullptr : found->second;
}

double ReferenceCall::attribute(std::string_view name) const {
  const auto found = std::ranges::find(call->attributes, name, &Attribute::name);
  return found == call->attributes.end() ? 0 : found->value;
}

Formula formula_of(const ReferenceCall& call) {
  const bool product = call.call->kernel == "matmul" || call.call->kernel == "widened_matmul";
  const bool adds = (product && call.attribute("beta") != 0) ||
                    (call.call->kernel == "axpby" && call.attribute("accumulate_y") != 0);
  return adds ? nullptr : formula_of(call.call->kernel);
}

}  // namespace mulligan::doctor
