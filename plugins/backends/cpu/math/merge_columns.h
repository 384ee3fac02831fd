// How a skip connection is merged into a sum, per column: merged = k sum + (1-k) w skip with k =
// sigmoid(gate); without gate sum + w skip; without weight w = 0.
#pragma once

#include <mulligan/vector_math.hpp>

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu {

// merged = of_sum sum + of_skip skip. Null where nothing is merged: without weight and gate.
struct MergeColumns {
  float *of_sum, *of_skip;

  // Of workspace.
  static std::int64_t floats(std::int64_t width) { return 2 * aligned_floats(width); }

  // weight, gate [width]: null where they are absent.
  MergeColumns(const float* weight, const float* gate, float* workspace, std::int64_t width)
      : of_sum(weight || gate ? workspace : nullptr),
        of_skip(of_sum ? workspace + aligned_floats(width) : nullptr) {
    for (std::int64_t j = 0; of_sum && j < width; ++j) {
      const float w = weight ? weight[j] : 0.0f;
      of_sum[j] = gate ? sdk::fast_sigmoid(gate[j]) : 1.0f;
      of_skip[j] = gate ? sdk::fast_sigmoid(-gate[j]) * w : w;
    }
  }

  // Adds to dweight and dgate [width], where they are wanted, from the sums over rows of m skip and m (sum - w skip), m the
  // gradient of merged.
  void add_gradients(const float* gate, std::int64_t width, const float* of_skips, const float* of_gates,
                     float* dweight, float* dgate) const {
    for (std::int64_t j = 0; j < width; ++j) {
      const float rest = gate ? sdk::fast_sigmoid(-gate[j]) : 1.0f;
      if (dweight) dweight[j] += rest * of_skips[j];
      if (dgate) dgate[j] += of_sum[j] * rest * of_gates[j];
    }
  }
};

}  // namespace mulligan::cpu
