// rms_norm over the last axis of x[..., d]:  r = 1 / sqrt(mean(x^2) + eps),  y = scale r x
//   dx = scale r (dy - x r^2 mean(dy x))
//
// Determinism: rows are independent; a row is summed in fixed lanes.
#include "plugins/backends/common/shapes/rms_norm.h"

#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

using Forward = shapes::RmsNormForward;
using Backward = shapes::RmsNormBackward;

void run_forward(const Launch& launch) {
  const auto scale = static_cast<float>(launch.attribute(0)), eps = static_cast<float>(launch.attribute(1));
  const std::int64_t width = row_width(launch, 0);
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    const T* all_x = launch.data<const T>(0);
    T* all_y = launch.data<T>(1);
    launch.parallel_for(row_count(launch, 0), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* x = all_x + row * width;
        const float sum = lane_sum(width, [=](std::int64_t j) { return float(x[j]) * float(x[j]); });
        const float factor = scale * reciprocal_rms(sum, width, eps);
        write_row(all_y + row * width, width, false, [=](std::int64_t j) { return factor * float(x[j]); });
      }
    });
  });
}

void run_backward(const Launch& launch) {
  const auto scale = static_cast<float>(launch.attribute(0)), eps = static_cast<float>(launch.attribute(1));
  const bool accumulate = launch.attribute(2) != 0;
  const std::int64_t width = row_width(launch, 0);
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    const T* all_x = launch.data<const T>(0);
    const T* all_dy = launch.data<const T>(1);
    T* all_dx = launch.data<T>(2);
    launch.parallel_for(row_count(launch, 0), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
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

MULLIGAN_CPU_KERNEL(rms_norm_fwd, Forward::signature, Forward::check, run_forward)
MULLIGAN_CPU_KERNEL(rms_norm_bwd, Backward::signature, Backward::check, run_backward)

}  // namespace
}  // namespace mulligan::cpu
