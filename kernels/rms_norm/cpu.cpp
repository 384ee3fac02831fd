// rms_norm over the last axis of x[..., d]:  r = 1 / sqrt(mean(x^2) + eps),  y = scale r x
//   dx (+)= scale r (dy - x r^2 mean(dy x))
//
// Determinism: rows are independent; a row is summed in fixed lanes.
#include "kernels/rms_norm/signature.h"

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::rms_norm {
namespace {

struct Forward : shapes::RmsNormForward {
  static void run(const Launch& launch);
};
struct Backward : shapes::RmsNormBackward {
  static void run(const Launch& launch);
};

void Forward::run(const Launch& launch) {
  const auto scale = static_cast<float>(launch.attribute(Forward::scale)),
             eps = static_cast<float>(launch.attribute(Forward::eps));
  const std::int64_t width = row_width(launch, Forward::x);
  dispatch_compute(launch.dtype(Forward::x), [&]<typename T>() {
    const T* all_x = launch.data<const T>(Forward::x);
    T* all_y = launch.data<T>(Forward::y);
    launch.parallel_for(
        row_count(launch, Forward::x), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* x = all_x + row * width;
            const float sum = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(x[j]); });
            const float factor = scale * reciprocal_rms(sum, width, eps);
            write_row(all_y + row * width, width, false,
                      [=](std::int64_t j) { return factor * float(x[j]); });
          }
        });
  });
}

void Backward::run(const Launch& launch) {
  const auto scale = static_cast<float>(launch.attribute(Backward::scale)),
             eps = static_cast<float>(launch.attribute(Backward::eps));
  const bool accumulate = launch.attribute(Backward::accumulate_dx) != 0;
  const std::int64_t width = row_width(launch, Backward::x);
  dispatch_compute(launch.dtype(Backward::x), [&]<typename T>() {
    const T* all_x = launch.data<const T>(Backward::x);
    const T* all_dy = launch.data<const T>(Backward::dy);
    T* all_dx = launch.data<T>(Backward::dx);
    launch.parallel_for(
        row_count(launch, Backward::x), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* x = all_x + row * width;
            const T* dy = all_dy + row * width;
            const float squares = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(x[j]); });
            const float product = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(dy[j]); });
            const float r = reciprocal_rms(squares, width, eps), factor = scale * r;
            const float along = factor * r * r * product / static_cast<float>(width);
            write_row(all_dx + row * width, width, accumulate,
                      [=](std::int64_t j) { return factor * float(dy[j]) - along * float(x[j]); });
          }
        });
  });
}

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::rms_norm
