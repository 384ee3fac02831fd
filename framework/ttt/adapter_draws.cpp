#include "framework/ttt/adapter_draws.h"

#include <fmt/format.h>

#include "framework/core/philox.h"

namespace mulligan {

void PhiloxDraws::fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const {
  const PhiloxStream stream(seed_, fmt::format("ttt/{}/{}", draw, tensor.name));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(tensor.bound * (2.0 * stream.uniform(i) - 1.0));
  }
}

}  // namespace mulligan
