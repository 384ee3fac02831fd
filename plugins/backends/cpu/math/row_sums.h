// Sums over rows whose result does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plugins/backends/cpu/cpu_kernel.h"

namespace mulligan::cpu {

// [0, rows) cut into at most 64 pieces of equal length (the last may be shorter); a function of `rows` only.
struct Pieces {
  explicit Pieces(std::int64_t rows)
      : rows(rows),
        length(std::max<std::int64_t>(32, (rows + 63) / 64)),
        count((rows + length - 1) / length) {}
  std::int64_t begin(std::int64_t piece) const { return piece * length; }
  std::int64_t end(std::int64_t piece) const { return std::min(rows, (piece + 1) * length); }

  std::int64_t rows, length, count;
};

// Bytes of workspace for add_row_sums.
inline std::size_t row_sums_bytes(std::int64_t rows, std::int64_t width) {
  return static_cast<std::size_t>(Pieces(rows).count * width) * sizeof(float);
}

// Cuts the rows into Pieces. body(partial, begin, end) adds the rows [begin, end), in order, to partial[width]. partial starts
// at zero and is row number begin / Pieces(rows).length of `workspace` (row_sums_bytes(rows, width), 64-byte aligned). The body
// may also compute values that belong to its rows alone. If no sum is `wanted`, partial is null, and the body does only that
// work.
template <typename Body>
void sum_pieces(const Launch& launch, std::int64_t rows, std::int64_t width, float* workspace, bool wanted,
                Body&& body) {
  const Pieces pieces(rows);
  launch.for_each(pieces.count, 1, [&](std::int64_t piece) {
    float* partial = wanted ? workspace + piece * width : nullptr;
    if (wanted) std::fill_n(partial, width, 0.0f);
    body(partial, pieces.begin(piece), pieces.end(piece));
  });
}

// out[count] += the columns [first, first + count) of what sum_pieces left, in order of the pieces. Nothing
// without `out` (null).
inline void add_pieces(const Launch& launch, std::int64_t rows, std::int64_t width, const float* workspace,
                       std::int64_t first, std::int64_t count, float* out) {
  if (!out) return;
  const Pieces pieces(rows);
  launch.parallel_for(count, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
      const float* partial = workspace + piece * width + first;
      for (std::int64_t j = begin; j < end; ++j) out[j] += partial[j];
    }
  });
}

// out[width] += sum over rows, by sum_pieces and add_pieces: body(partial, row) adds a row. Without `out` (null) nothing is
// summed.
template <typename Body>
void add_row_sums(const Launch& launch, std::int64_t rows, std::int64_t width, float* workspace, float* out,
                  Body&& body) {
  sum_pieces(launch, rows, width, workspace, out != nullptr,
             [&](float* partial, std::int64_t begin, std::int64_t end) {
               for (std::int64_t row = begin; row < end; ++row) body(partial, row);
             });
  add_pieces(launch, rows, width, workspace, 0, width, out);
}

}  // namespace mulligan::cpu
