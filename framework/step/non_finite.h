// Which tensors of a run hold numbers that are not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph/tensor_store.h"

namespace mulligan {

struct NonFinite {
  std::string tensor;        // the first of the names given
  std::int64_t element = 0;  // its first element that is not finite
  double value = 0;          // infinite or NaN
  std::size_t tensors = 0;   // how many of the names have one
};

// Looks through `names` (f32 or bf16; others are passed over) in order. Downloads them: for a run that stops.
std::optional<NonFinite> find_non_finite(const TensorStore& store, const std::vector<std::string>& names);

}  // namespace mulligan
