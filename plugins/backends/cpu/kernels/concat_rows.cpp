// concat_rows: y [R, w] is the matrices a, b, c and d one below the other, from rows 0, row_b, row_c and row_d
// on; all other rows are zero. Backward: da += the rows of dy that hold a, and so on; da ... are f32.
//
// Determinism: elements are independent.
#include "plugins/backends/common/shapes/concat_rows.h"
#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

struct Forward : shapes::ConcatRowsForward {
  static void run(const Launch& launch);
};
struct Backward : shapes::ConcatRowsBackward {
  static void run(const Launch& launch);
};

// Calls body(argument, begin, end, offset) for what lies in the elements [begin, end) of the whole: a part of
// the matrix `argument` from its element `offset` on.
template <typename Parts, typename Body>
void for_parts(const Parts& parts, std::uint32_t first, std::int64_t begin, std::int64_t end, Body&& body) {
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const std::int64_t from = std::max(begin, parts[i].begin), to = std::min(end, parts[i].end);
    if (from < to) body(first + i, from, to, from - parts[i].begin);
  }
}

void Forward::run(const Launch& launch) {
  const auto all = parts(launch, a, launch.dim(y, 1));
  dispatch_compute(launch.dtype(y), [&]<typename T>() {
    T* whole = launch.data<T>(y);
    for_elements(launch, launch.size(y), [&](std::int64_t begin, std::int64_t end) {
      std::int64_t done = begin;  // elements before it are written
      for_parts(all, a, begin, end,
                [&](std::uint32_t argument, std::int64_t from, std::int64_t to, std::int64_t offset) {
                  std::fill(whole + done, whole + from, T(0.0f));
                  std::copy_n(launch.data<const T>(argument) + offset, to - from, whole + from);
                  done = to;
                });
      std::fill(whole + done, whole + end, T(0.0f));
    });
  });
}

void Backward::run(const Launch& launch) {
  const auto all = parts(launch, da, launch.dim(dy, 1));
  dispatch_compute(launch.dtype(dy), [&]<typename T>() {
    const T* whole = launch.data<const T>(dy);
    for_elements(launch, launch.size(dy), [&](std::int64_t begin, std::int64_t end) {
      for_parts(all, da, begin, end,
                [&](std::uint32_t argument, std::int64_t from, std::int64_t to, std::int64_t offset) {
                  write_row(launch.data<float>(argument) + offset, to - from, true,
                            [added = whole + from](std::int64_t i) { return float(added[i]); });
                });
    });
  });
}

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu
