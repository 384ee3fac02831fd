// skip_merge on x, s [T,d], weight w [d], gate [d]:  y = k x + (1 - k) w s,  k = sigmoid(gate); without gate:
// y = x + w s
//   dx (+)= k dy,  ds (+)= (1 - k) w dy,  dw += (1 - k) sum(dy s),  dgate += k (1 - k) sum(dy (x - w s))
//   (no gate: dx (+)= dy, ...)
//
// Determinism: rows are independent; sums over tokens go through partial sums over fixed pieces.
#include <mulligan/vector_math.hpp>

#include "kernels/skip_merge/signature.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::skip_merge {
namespace {

struct Forward : shapes::SkipMergeForward {
  static void check(sdk::CallChecks& call);
  static void run(const Launch& launch);
};
struct Backward : shapes::SkipMergeBackward {
  static void check(sdk::CallChecks& call);
  static void run(const Launch& launch);
};

// Per column: y = of_x x + of_s s.
struct Columns {
  float* of_x;
  float* of_s;

  Columns(float* workspace, std::int64_t width) : of_x(workspace), of_s(workspace + aligned_floats(width)) {}
  static std::size_t floats(std::int64_t width) { return 2 * aligned_floats(width); }

  void fill(const float* weight, const float* gate, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) {
      of_x[j] = gate ? sdk::fast_sigmoid(gate[j]) : 1.0f;
      of_s[j] = gate ? sdk::fast_sigmoid(-gate[j]) * weight[j] : weight[j];
    }
  }
};

void Forward::check(sdk::CallChecks& call) {
  SkipMergeForward::check(call);
  call.workspace(Columns::floats(call.dim(x, 1)) * sizeof(float));
}

void Forward::run(const Launch& launch) {
  const std::int64_t width = launch.dim(Forward::x, 1);
  Columns columns(launch.workspace<float>(), width);
  columns.fill(launch.data<const float>(Forward::weight), launch.data<const float>(Forward::gate), width);
  dispatch_compute(launch.dtype(Forward::x), [&]<typename T>() {
    launch.parallel_for(
        launch.dim(Forward::x, 0), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* x = launch.data<const T>(Forward::x) + row * width;
            const T* s = launch.data<const T>(Forward::s) + row * width;
            write_row(launch.data<T>(Forward::y) + row * width, width, false, [=](std::int64_t j) {
              return columns.of_x[j] * float(x[j]) + columns.of_s[j] * float(s[j]);
            });
          }
        });
  });
}

void Backward::check(sdk::CallChecks& call) {
  SkipMergeBackward::check(call);
  const std::int64_t rows = call.dim(x, 0), width = call.dim(x, 1);
  call.workspace((Columns::floats(width) + aligned_floats(2 * width)) * sizeof(float) +
                 row_sums_bytes(rows, 2 * width));
}

template <typename T>
void backward(const Launch& launch) {
  const std::int64_t width = launch.dim(Backward::x, 1);
  const float* weight = launch.data<const float>(Backward::weight);
  const float* gate = launch.data<const float>(Backward::gate);
  const bool accumulate_dx = launch.attribute(Backward::accumulate_dx) != 0,
             accumulate_ds = launch.attribute(Backward::accumulate_ds) != 0;
  Columns columns(launch.workspace<float>(), width);
  columns.fill(weight, gate, width);
  float* total = launch.workspace<float>() + Columns::floats(width);  // sum(dy s) [d], sum(dy (x - w s)) [d]
  float* partials = total + aligned_floats(2 * width);
  std::fill_n(total, 2 * width, 0.0f);
  const auto add_rows = [&](float* partial, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = launch.data<const T>(Backward::x) + row * width;
      const T* s = launch.data<const T>(Backward::s) + row * width;
      const T* dy = launch.data<const T>(Backward::dy) + row * width;
      if (partial) {
        write_row(partial, width, true, [=](std::int64_t j) { return float(dy[j]) * float(s[j]); });
      }
      if (partial && launch.has(Backward::dgate)) {
        write_row(partial + width, width, true,
                  [=](std::int64_t j) { return float(dy[j]) * (float(x[j]) - weight[j] * float(s[j])); });
      }
      if (launch.has(Backward::dx)) {
        write_row(launch.data<T>(Backward::dx) + row * width, width, accumulate_dx,
                  [=](std::int64_t j) { return columns.of_x[j] * float(dy[j]); });
      }
      if (launch.has(Backward::ds)) {
        write_row(launch.data<T>(Backward::ds) + row * width, width, accumulate_ds,
                  [=](std::int64_t j) { return columns.of_s[j] * float(dy[j]); });
      }
    }
  };
  const bool sums = launch.has(Backward::dweight) || launch.has(Backward::dgate);
  add_row_sums(launch, launch.dim(Backward::x, 0), 2 * width, partials, sums ? total : nullptr, add_rows);
  float* dweight = launch.data<float>(Backward::dweight);
  float* dgate = launch.data<float>(Backward::dgate);
  for (std::int64_t j = 0; j < width; ++j) {
    const float rest = gate ? sdk::fast_sigmoid(-gate[j]) : 1.0f;  // 1 - k
    if (dweight) dweight[j] += rest * total[j];
    if (dgate) dgate[j] += columns.of_x[j] * rest * total[width + j];
  }
}

void Backward::run(const Launch& launch) {
  dispatch_compute(launch.dtype(Backward::x), [&]<typename T>() { backward<T>(launch); });
}

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::skip_merge
