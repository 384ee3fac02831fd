// skip_merge on x, s [T,d], weight w [d], gate [d]:  y = k x + (1 - k) w s,  k = sigmoid(gate); without gate:
// y = x + w s
//   dx = k dy,  ds = (1 - k) w dy,  dw += (1 - k) sum(dy s),  dgate += k (1 - k) sum(dy (x - w s))   (no
//   gate: dx = dy, ...)
//
// Determinism: rows are independent; sums over tokens go through partial sums over fixed pieces.
#include "plugins/backends/common/shapes/skip_merge.h"
#include "plugins/backends/cpu/kernels/row_math.h"
#include "plugins/backends/cpu/vector_math.h"

namespace mulligan::cpu {
namespace {

// Per column: y = of_x x + of_s s.
struct Columns {
  float* of_x;
  float* of_s;

  Columns(float* workspace, std::int64_t width) : of_x(workspace), of_s(workspace + aligned_floats(width)) {}
  static std::size_t floats(std::int64_t width) { return 2 * aligned_floats(width); }

  void fill(const float* weight, const float* gate, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) {
      of_x[j] = gate ? fast_sigmoid(gate[j]) : 1.0f;
      of_s[j] = gate ? fast_sigmoid(-gate[j]) * weight[j] : weight[j];
    }
  }
};

void check_forward(Checker& check) {
  shapes::SkipMergeForward::check(check);
  check.workspace(Columns::floats(check.dim(0, 1)) * sizeof(float));
}

void run_forward(const Launch& launch) {
  const std::int64_t width = launch.dim(0, 1);
  Columns columns(launch.workspace<float>(), width);
  columns.fill(launch.data<const float>(2), launch.data<const float>(3), width);
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    launch.parallel_for(launch.dim(0, 0), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* x = launch.data<const T>(0) + row * width;
        const T* s = launch.data<const T>(1) + row * width;
        write_row(launch.data<T>(4) + row * width, width, false, [=](std::int64_t j) {
          return columns.of_x[j] * float(x[j]) + columns.of_s[j] * float(s[j]);
        });
      }
    });
  });
}

enum { kX, kS, kWeight, kGate, kDy, kDx, kDs, kDweight, kDgate };

void check_backward(Checker& check) {
  shapes::SkipMergeBackward::check(check);
  const std::int64_t rows = check.dim(kX, 0), width = check.dim(kX, 1);
  check.workspace((Columns::floats(width) + aligned_floats(2 * width)) * sizeof(float) +
                  row_sums_bytes(rows, 2 * width));
}

template <typename T>
void backward(const Launch& launch) {
  const std::int64_t width = launch.dim(kX, 1);
  const float* weight = launch.data<const float>(kWeight);
  const float* gate = launch.data<const float>(kGate);
  const bool accumulate_dx = launch.attribute(0) != 0, accumulate_ds = launch.attribute(1) != 0;
  Columns columns(launch.workspace<float>(), width);
  columns.fill(weight, gate, width);
  float* total = launch.workspace<float>() + Columns::floats(width);  // sum(dy s) [d], sum(dy (x - w s)) [d]
  float* partials = total + aligned_floats(2 * width);
  std::fill_n(total, 2 * width, 0.0f);
  const auto add_rows = [&](float* partial, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = launch.data<const T>(kX) + row * width;
      const T* s = launch.data<const T>(kS) + row * width;
      const T* dy = launch.data<const T>(kDy) + row * width;
      if (partial) {
        write_row(partial, width, true, [=](std::int64_t j) { return float(dy[j]) * float(s[j]); });
      }
      if (partial && launch.has(kDgate)) {
        write_row(partial + width, width, true,
                  [=](std::int64_t j) { return float(dy[j]) * (float(x[j]) - weight[j] * float(s[j])); });
      }
      if (launch.has(kDx)) {
        write_row(launch.data<T>(kDx) + row * width, width, accumulate_dx,
                  [=](std::int64_t j) { return columns.of_x[j] * float(dy[j]); });
      }
      if (launch.has(kDs)) {
        write_row(launch.data<T>(kDs) + row * width, width, accumulate_ds,
                  [=](std::int64_t j) { return columns.of_s[j] * float(dy[j]); });
      }
    }
  };
  const bool sums = launch.has(kDweight) || launch.has(kDgate);
  add_row_sums(launch, launch.dim(kX, 0), 2 * width, partials, sums ? total : nullptr, add_rows);
  float* dweight = launch.data<float>(kDweight);
  float* dgate = launch.data<float>(kDgate);
  for (std::int64_t j = 0; j < width; ++j) {
    const float rest = gate ? fast_sigmoid(-gate[j]) : 1.0f;  // 1 - k
    if (dweight) dweight[j] += rest * total[j];
    if (dgate) dgate[j] += columns.of_x[j] * rest * total[width + j];
  }
}

void run_backward(const Launch& launch) {
  dispatch_compute(launch.dtype(kX), [&]<typename T>() { backward<T>(launch); });
}

MULLIGAN_CPU_KERNEL(skip_merge_fwd, shapes::SkipMergeForward::signature, check_forward, run_forward)
MULLIGAN_CPU_KERNEL(skip_merge_bwd, shapes::SkipMergeBackward::signature, check_backward, run_backward)

}  // namespace
}  // namespace mulligan::cpu
