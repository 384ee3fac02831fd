// skip_merge on x, s [T,d], weight w [d], gate [d]:  y = k x + (1 - k) w s,  k = sigmoid(gate); without gate:
// y = x + w s
//   dx (+)= k dy,  ds (+)= (1 - k) w dy,  dw += (1 - k) sum(dy s),  dgate += k (1 - k) sum(dy (x - w s))
//   (no gate: dx (+)= dy, ...)
//
// Determinism: rows are independent; sums over tokens go through partial sums over fixed pieces.
#include "kernels/skip_merge/signature.h"
#include "plugins/backends/cpu/math/merge_columns.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::skip_merge {
namespace {

struct Forward : shapes::SkipMergeForward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return MergeColumns::floats(call.dim(x, 1)) * sizeof(float);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(Forward::x, 1);
    const MergeColumns columns(launch.data<const float>(Forward::weight),
                               launch.data<const float>(Forward::gate), launch.workspace<float>(), width);
    for_rows(launch, launch.dim(Forward::x, 0), width, [&](std::int64_t row) {
      const T* x = launch.data<const T>(Forward::x) + row * width;
      const T* s = launch.data<const T>(Forward::s) + row * width;
      write_row(launch.data<T>(Forward::y) + row * width, width, false, [=](std::int64_t j) {
        return columns.of_sum[j] * float(x[j]) + columns.of_skip[j] * float(s[j]);
      });
    });
  }
};

struct Backward : shapes::SkipMergeBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    const std::int64_t rows = call.dim(x, 0), width = call.dim(x, 1);
    return (MergeColumns::floats(width) + aligned_floats(2 * width)) * sizeof(float) +
           row_sums_bytes(rows, 2 * width);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(Backward::x, 1);
    const float* weight = launch.data<const float>(Backward::weight);
    const float* gate = launch.data<const float>(Backward::gate);
    const bool accumulate_dx = launch.flag(Backward::accumulate_dx),
               accumulate_ds = launch.flag(Backward::accumulate_ds);
    const MergeColumns columns(weight, gate, launch.workspace<float>(), width);
    float* total =
        launch.workspace<float>() + MergeColumns::floats(width);  // sum(dy s) [d], sum(dy (x - w s)) [d]
    float* partials = total + aligned_floats(2 * width);
    std::fill_n(total, 2 * width, 0.0f);
    const auto add_rows = [&](float* partial, std::int64_t row) {
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
                  [=](std::int64_t j) { return columns.of_sum[j] * float(dy[j]); });
      }
      if (launch.has(Backward::ds)) {
        write_row(launch.data<T>(Backward::ds) + row * width, width, accumulate_ds,
                  [=](std::int64_t j) { return columns.of_skip[j] * float(dy[j]); });
      }
    };
    const bool sums = launch.has(Backward::dweight) || launch.has(Backward::dgate);
    add_row_sums(launch, launch.dim(Backward::x, 0), 2 * width, partials, sums ? total : nullptr, add_rows);
    columns.add_gradients(gate, width, total, total + width, launch.data<float>(Backward::dweight),
                          launch.data<float>(Backward::dgate));
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::skip_merge
