// Differences between two sets of tensors.
#pragma once

#include <string>
#include <vector>

#include "framework/core/safetensors.h"

namespace mulligan {

struct TensorDifference {
  std::string name;
  std::string what;  // "differs in 12 of 512 elements, at most by 3.1e-05", "only in the first", ...
};

// Names in both, compared element by element and bit by bit; sorted by name. Empty: identical.
std::vector<TensorDifference> compare_tensors(const SafetensorsFile& first, const SafetensorsFile& second);

}  // namespace mulligan
