#include "framework/step/non_finite.h"

#include <cmath>

#include "framework/run/weights.h"

namespace mulligan {

std::optional<NonFinite> find_non_finite(const TensorStore& store, const std::vector<std::string>& names) {
  std::optional<NonFinite> found;
  for (const std::string& name : names) {
    const TensorType& type = store.type(name);
    if (type.dtype != MLG_F32 && type.dtype != MLG_BF16) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
    store.download(name, bytes);
    const std::vector<float> values = decode_floats(bytes, type.dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      if (!found) found = NonFinite{name, static_cast<std::int64_t>(i), values[i], 0};
      ++found->tensors;
      break;
    }
  }
  return found;
}

}  // namespace mulligan
