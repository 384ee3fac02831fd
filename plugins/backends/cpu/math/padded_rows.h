// The last rows of a matmul whose tiles have one fixed height (MatmulPlan): they are copied below each other
// with rows of zeros after them, multiplied as a whole tile, and copied back. So the same code computes a row
// however many rows there are, and reads and writes it with the same strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plugins/backends/cpu/math/matmul_plan.h"

namespace mulligan::cpu {

class PaddedRows {
 public:
  // `ab_bytes`, `c_bytes`: of one element of a and of c; `reads_c`: the matmul adds to c.
  PaddedRows(const MatmulPlan& plan, std::int64_t ab_bytes, std::int64_t c_bytes, bool reads_c)
      : rows_(plan.tile_m),
        a_row_(plan.k * ab_bytes),
        c_row_(plan.n * c_bytes),
        c_bytes_(c_bytes),
        reads_c_(reads_c) {}

  // Of scratch memory, for one thread.
  std::size_t bytes() const { return c_offset() + static_cast<std::size_t>(rows_ * c_row_); }

  // a: `rows` whole rows; c: the tile's first element, `columns` wide. `tile_matmul(a, c)` computes a whole tile.
  template <typename TileMatmul>
  void run(std::byte* scratch, std::int64_t rows, std::int64_t columns, const std::byte* a, std::byte* c,
           TileMatmul&& tile_matmul) const {
    std::byte *a_tile = scratch, *c_tile = scratch + c_offset();
    std::memcpy(a_tile, a, static_cast<std::size_t>(rows * a_row_));
    std::memset(a_tile + rows * a_row_, 0, static_cast<std::size_t>((rows_ - rows) * a_row_));
    const auto width = static_cast<std::size_t>(columns * c_bytes_);
    if (reads_c_) {
      for (std::int64_t r = 0; r < rows; ++r) std::memcpy(c_tile + r * c_row_, c + r * c_row_, width);
      for (std::int64_t r = rows; r < rows_; ++r) std::memset(c_tile + r * c_row_, 0, width);
    }
    tile_matmul(static_cast<const std::byte*>(a_tile), c_tile);
    for (std::int64_t r = 0; r < rows; ++r) std::memcpy(c + r * c_row_, c_tile + r * c_row_, width);
  }

 private:
  std::size_t c_offset() const { return (static_cast<std::size_t>(rows_ * a_row_) + 255) / 256 * 256; }

  std::int64_t rows_, a_row_, c_row_, c_bytes_;
  bool reads_c_;
};

}  // namespace mulligan::cpu
