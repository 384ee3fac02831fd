#include "tools/cost/call_text.h"

#include <fmt/format.h>

namespace mulligan {

std::string shape_text(const Graph& graph, const Call& call) {
  std::string text;
  for (const Value argument : call.arguments) {
    if (!argument) continue;
    const TensorType& type = graph.type(argument);
    text += text.empty() ? "[" : " [";
    for (int axis = 0; axis < type.rank; ++axis)
      text += fmt::format("{}{}", axis ? ", " : "", type.dims[axis]);
    text += "]";
  }
  return text;
}

}  // namespace mulligan
