// The order in which physical layers run, and the entries that skip connections link.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/config/model_config.h"

namespace mulligan {

struct LayerOrder {
  std::vector<std::int64_t> encoder;  // physical layers; each output is pushed on the skip stack
  // physical layers; entry j pops one while j < skip_rows and the stack holds any
  std::vector<std::int64_t> decoder;
};

// Plain: 0..L-1 cut at L/2. Looped: 0..first-1, (first..last) x (1 + extra_passes), last+1..L-1, cut at half
// its length (rounded down); the same as plain when extra_passes is 0.
LayerOrder layer_order(const ModelConfig& model, LayerOrderKind kind);

// Rows of skip_weights and skip_gates: min(#encoder, #decoder) of the looped order, used or not.
std::int64_t skip_rows(const ModelConfig& model);

}  // namespace mulligan
