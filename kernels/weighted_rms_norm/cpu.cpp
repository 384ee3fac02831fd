// weighted_rms_norm on x [T,d] and weight [d]:  r = 1 / sqrt(mean(x^2) + eps),  y = weight r x
//   with g = weight dy:  dx (+)= r (g - x r^2 mean(g x)),  dweight += sum over tokens of dy r x
//
// Determinism: rows are independent; a row is summed in fixed lanes; dweight goes through partial sums over
// fixed pieces of tokens.
#include "kernels/weighted_rms_norm/signature.h"

#include <array>

#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::weighted_rms_norm {
namespace {

struct Forward : shapes::WeightedRmsNormForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto eps = launch.number(Forward::eps);
    const std::int64_t width = launch.dim(Forward::x, 1);
    const float* weight = launch.data<const float>(Forward::weight);
    for_rows(launch, launch.dim(Forward::x, 0), width, [&](std::int64_t row) {
      const T* x = launch.data<const T>(Forward::x) + row * width;
      const float sum = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(x[j]); });
      const float r = reciprocal_rms(sum, width, eps);
      write_row(launch.data<T>(Forward::y) + row * width, width, false,
                [=](std::int64_t j) { return weight[j] * (r * float(x[j])); });
    });
  }
};

struct Backward : shapes::WeightedRmsNormBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return row_sums_bytes(call.dim(x, 0), call.dim(x, 1));
  }
  template <typename T>
  static void run(const Launch& launch) {
    const auto eps = launch.number(Backward::eps);
    const bool accumulate = launch.flag(Backward::accumulate_dx);
    const std::int64_t width = launch.dim(Backward::x, 1);
    const float* weight = launch.data<const float>(Backward::weight);
    const T *all_x = launch.data<const T>(Backward::x), *all_dy = launch.data<const T>(Backward::dy);
    T* all_dx = launch.data<T>(Backward::dx);
    const auto add_rows = [=](float* partial, std::int64_t row) {
      const T *x = all_x + row * width, *dy = all_dy + row * width;
      const auto [squares, product] = lane_sums<2>(width, [=](std::int64_t j) {
        return std::array{float(x[j]) * float(x[j]), weight[j] * float(dy[j]) * float(x[j])};
      });
      const float r = reciprocal_rms(squares, width, eps);
      const float along = r * r * r * product / static_cast<float>(width);
      if (partial) {
        write_row(partial, width, true, [=](std::int64_t j) { return float(dy[j]) * (r * float(x[j])); });
      }
      if (!all_dx) return;
      write_row(all_dx + row * width, width, accumulate,
                [=](std::int64_t j) { return r * weight[j] * float(dy[j]) - along * float(x[j]); });
    };
    add_row_sums(launch, launch.dim(Backward::x, 0), width, launch.workspace<float>(),
                 launch.data<float>(Backward::dweight), add_rows);
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::weighted_rms_norm
