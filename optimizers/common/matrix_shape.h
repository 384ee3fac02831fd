// Matrices [r,c] and banks of them [B,r,c].
#pragma once

#include <mulligan/cpu_kernel.hpp>

#include <algorithm>
#include <cstdint>

namespace mulligan::optimizers {

// The matrices of an argument of rank 2 or 3.
struct MatrixShape {
  std::int64_t matrices, rows, columns;

  static MatrixShape of(const mlg_tensor& t) {
    return {t.rank == 3 ? t.shape[0] : 1, t.shape[t.rank - 2], t.shape[t.rank - 1]};
  }
  static MatrixShape of(const sdk::Launch& call, std::uint32_t argument) { return of(call.tensor(argument)); }
  std::int64_t all_rows() const { return matrices * rows; }
  std::int64_t elements() const { return rows * columns; }  // of a matrix
  // Threads of a block that sums over `count` elements: whole warps, some elements per thread.
  static std::uint32_t block_threads(std::int64_t count) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>((count + 127) / 128 * 32, 32, 256));
  }
  // The smallest number of rows that is worth a separate task.
  std::int64_t grain() const { return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, columns)); }
};

}  // namespace mulligan::optimizers
