// concat_rows: y [R, w] is the matrices a, b, c and d one below the other, from rows 0, row_b, row_c and
// row_d on; a matrix may have fewer columns; all that no matrix gives is zero. Backward: da += what dy has in
// the place of a, and so on; da ... are f32.
//
// Determinism: elements are independent.
#include <algorithm>

#include "kernels/concat_rows/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::concat_rows {
namespace {

// Calls body(row, part) for each row of a matrix [rows, width], part null where no matrix has that row.
template <typename Parts, typename Body>
void for_part_rows(const Launch& launch, const Parts& parts, std::int64_t rows, std::int64_t width,
                   Body&& body) {
  for_rows(launch, rows, width, [&](std::int64_t row) {
    const auto holds = [row](const auto& part) { return row >= part.begin && row < part.end; };
    const auto part = std::find_if(parts.begin(), parts.end(), holds);
    body(row, part == parts.end() ? nullptr : &*part);
  });
}

struct Forward : shapes::ConcatRowsForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto all = parts(launch, a);
    const std::int64_t width = launch.dim(y, 1);
    for_part_rows(launch, all, launch.dim(y, 0), width, [&](std::int64_t row, const Part* part) {
      T* to = launch.data<T>(y) + row * width;
      const std::int64_t taken = part ? part->width : 0;
      if (part) {
        const auto argument = static_cast<std::uint32_t>(a + (part - all.data()));
        std::copy_n(launch.data<const T>(argument) + (row - part->begin) * taken, taken, to);
      }
      std::fill(to + taken, to + width, T(0.0f));
    });
  }
};

struct Backward : shapes::ConcatRowsBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto all = parts(launch, da);
    const std::int64_t width = launch.dim(dy, 1);
    for_part_rows(launch, all, launch.dim(dy, 0), width, [&](std::int64_t row, const Part* part) {
      if (!part) return;
      const auto argument = static_cast<std::uint32_t>(da + (part - all.data()));
      write_row(launch.data<float>(argument) + (row - part->begin) * part->width, part->width, true,
                [added = launch.data<const T>(dy) + row * width](std::int64_t j) { return float(added[j]); });
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::concat_rows
