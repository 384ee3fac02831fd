// leaky_relu_squared, element by element:  y = (u > 0 ? u : slope u)^2
//   du = dy (u > 0 ? 2 u : 2 slope^2 u)
//
// Determinism: elements are independent.
#include "plugins/backends/common/shapes/leaky_relu_squared.h"
#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

using Forward = shapes::LeakyReluSquaredForward;
using Backward = shapes::LeakyReluSquaredBackward;

void run_forward(const Launch& launch) {
  const auto slope = static_cast<float>(launch.attribute(0));
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    for_elements(launch, launch.size(0), [&](std::int64_t begin, std::int64_t end) {
      const T* u = launch.data<const T>(0) + begin;
      write_row(launch.data<T>(1) + begin, end - begin, false, [=](std::int64_t i) {
        const float value = u[i], bent = value > 0 ? value : slope * value;
        return bent * bent;
      });
    });
  });
}

void run_backward(const Launch& launch) {
  const auto slope = static_cast<float>(launch.attribute(0));
  const float below = 2.0f * slope * slope;
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    for_elements(launch, launch.size(0), [&](std::int64_t begin, std::int64_t end) {
      const T* u = launch.data<const T>(0) + begin;
      const T* dy = launch.data<const T>(1) + begin;
      write_row(launch.data<T>(2) + begin, end - begin, launch.attribute(1) != 0, [=](std::int64_t i) {
        const float value = u[i];
        return float(dy[i]) * (value * (value > 0 ? 2.0f : below));
      });
    });
  });
}

MULLIGAN_CPU_KERNEL(leaky_relu_squared_fwd, Forward::signature, Forward::check, run_forward)
MULLIGAN_CPU_KERNEL(leaky_relu_squared_bwd, Backward::signature, Backward::check, run_backward)

}  // namespace
}  // namespace mulligan::cpu
