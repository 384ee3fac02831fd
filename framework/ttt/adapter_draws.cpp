#include "framework/ttt/adapter_draws.h"

#include <fmt/format.h>

namespace mulligan {

std::optional<PhiloxStream> PhiloxDraws::stream(std::int64_t draw, const AdapterTensor& tensor) const {
  return PhiloxStream(seed_, fmt::format("ttt/{}/{}", draw, tensor.name));
}

void PhiloxDraws::fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const {
  const PhiloxStream numbers = *stream(draw, tensor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(tensor.bound * (2.0 * numbers.uniform(i) - 1.0));
  }
}

}  // namespace mulligan
