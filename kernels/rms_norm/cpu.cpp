// rms_norm over the last axis of x[..., d]:  r = 1 / sqrt(mean(x^2) + eps),  y = scale r x
//   dx (+)= scale r (dy - x r^2 mean(dy x))
//
// Determinism: rows are independent; a row is summed in fixed lanes.
#include "kernels/rms_norm/signature.h"

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::rms_norm {
namespace {

struct Forward : shapes::RmsNormForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto scale = launch.number(Forward::scale), eps = launch.number(Forward::eps);
    const std::int64_t width = row_width(launch, Forward::x);
    const T* all_x = launch.data<const T>(Forward::x);
    T* all_y = launch.data<T>(Forward::y);
    for_rows(launch, row_count(launch, Forward::x), width, [&](std::int64_t row) {
      const T* x = all_x + row * width;
      const float sum = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(x[j]); });
      const float factor = scale * reciprocal_rms(sum, width, eps);
      write_row(all_y + row * width, width, false, [=](std::int64_t j) { return factor * float(x[j]); });
    });
  }
};

struct Backward : shapes::RmsNormBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto scale = launch.number(Backward::scale), eps = launch.number(Backward::eps);
    const bool accumulate = launch.flag(Backward::accumulate_dx);
    const std::int64_t width = row_width(launch, Backward::x);
    const T* all_x = launch.data<const T>(Backward::x);
    const T* all_dy = launch.data<const T>(Backward::dy);
    T* all_dx = launch.data<T>(Backward::dx);
    for_rows(launch, row_count(launch, Backward::x), width, [&](std::int64_t row) {
      const T* x = all_x + row * width;
      const T* dy = all_dy + row * width;
      const float squares = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(x[j]); });
      const float product = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(dy[j]); });
      const float r = reciprocal_rms(squares, width, eps), factor = scale * r;
      const float along = factor * r * r * product / static_cast<float>(width);
      write_row(all_dx + row * width, width, accumulate,
                [=](std::int64_t j) { return factor * float(dy[j]) - along * float(x[j]); });
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::rms_norm
