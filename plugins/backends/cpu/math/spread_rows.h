// Rows of f32 that lie apart by a multiple of 2 KiB fall into few sets of the first-level cache. A product that
// walks down them, as oneDNN's for AVX2 does where rows run along the inner dimension, reaches 0.4 to 0.7 of its
// speed (docs/performance.md). Copied next to each other with a gap between them they are read at full speed.
#pragma once

#include <cstdint>
#include <memory>

#include "plugins/backends/cpu/math/onednn_gemm.h"

namespace mulligan::cpu {

// Elements from row to row of a copy of rows of `columns`: whole cache lines, and no multiple of 2 KiB.
constexpr std::int64_t spread_stride(std::int64_t columns) {
  const std::int64_t stride = (columns + 15) / 16 * 16 + 16;
  return stride % 512 == 0 ? stride + 16 : stride;
}

constexpr bool rows_conflict(std::int64_t stride) {
  return stride % 512 == 0;
}

// Whether an operand of the product has f32 rows along k that conflict and are read often enough for a copy.
bool spreads_a(const GemmShape& shape);
bool spreads_b(const GemmShape& shape);

// The product over copies of the operands of which that is true, made for 1,024 rows at a time: the copies stay in the
// cache, and memory does not grow with k. Null like make_gemm.
std::unique_ptr<Gemm> make_spread_gemm(const GemmShape& shape, int slots);

}  // namespace mulligan::cpu
