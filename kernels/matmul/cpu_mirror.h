// Copying the lower triangle of a square matrix to the upper one, transposed in registers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/backends/cpu/math/tile_pack.h"

namespace mulligan::cpu {

// c[j, i] = c[i, j] for first_row <= i < end_row, first_column <= j < min(i, end_column); c has rows of n.
// Written row by row: whole cache lines, in as many streams as a vector has lanes.
template <typename T>
void mirror_rows(T* c, std::int64_t n, std::int64_t first_row, std::int64_t end_row,
                 std::int64_t first_column, std::int64_t end_column) {
  for (std::int64_t j = first_column; j < std::min(end_column, end_row); j += kLanes) {
    const std::int64_t columns_end = std::min(end_column, j + kLanes);
    for (std::int64_t i = std::max(first_row, j); i < end_row; i += kLanes) {
      const std::int64_t rows_end = std::min(end_row, i + kLanes);
      if (i + kLanes == rows_end && j + kLanes == columns_end && columns_end <= i) {
        transpose_block(c + i * n + j, n, c + j * n + i, n);
        continue;
      }
      for (std::int64_t row = i; row < rows_end; ++row) {
        for (std::int64_t column = j; column < std::min(columns_end, row); ++column)
          c[column * n + row] = c[row * n + column];
      }
    }
  }
}

}  // namespace mulligan::cpu
