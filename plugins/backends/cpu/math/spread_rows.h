// Rows of f32 that lie apart by a multiple of 2 KiB fall into few sets of the first-level cache. A product that
// walks down them, as oneDNN's for AVX2 does where rows run along the inner dimension, reaches 0.4 to 0.7 of its
// speed (docs/performance.md). Copied next to each other with a gap between them they are read at full speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mulligan::cpu {

// Elements from row to row of a copy of rows of `columns`: whole cache lines, and no multiple of 2 KiB.
constexpr std::int64_t spread_stride(std::int64_t columns) {
  const std::int64_t stride = (columns + 15) / 16 * 16 + 16;
  return stride % 512 == 0 ? stride + 16 : stride;
}

constexpr bool rows_conflict(std::int64_t stride) {
  return stride % 512 == 0;
}

// `rows` rows of `columns` elements, `stride` elements apart, and where they are copied to.
struct SpreadRows {
  std::int64_t rows, columns, stride;

  std::size_t bytes() const {
    return static_cast<std::size_t>(rows * spread_stride(columns)) * sizeof(float);
  }
  const void* copy(const void* operand, std::byte* to) const {
    const auto* from = static_cast<const std::byte*>(operand);
    const auto step = [](std::int64_t elements) {
      return elements * static_cast<std::int64_t>(sizeof(float));
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(to + row * step(spread_stride(columns)), from + row * step(stride),
                  static_cast<std::size_t>(step(columns)));
    }
    return to;
  }
};

}  // namespace mulligan::cpu
