// leaky_relu_squared, element by element:  y = (u > 0 ? u : slope u)^2
//   du (+)= dy (u > 0 ? 2 u : 2 slope^2 u)
//
// Determinism: elements are independent.
#include "kernels/leaky_relu_squared/cpu_math.h"
#include "kernels/leaky_relu_squared/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::leaky_relu_squared_kernels {
namespace {

struct Forward : shapes::LeakyReluSquaredForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto slope = launch.number(Forward::slope);
    const T* u = launch.data<const T>(Forward::u);
    write_elements<T>(launch, y, false, [=](std::int64_t i) { return leaky_relu_squared(u[i], slope); });
  }
};

struct Backward : shapes::LeakyReluSquaredBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto slope = launch.number(Backward::slope);
    const float below = 2.0f * slope * slope;
    const T *u = launch.data<const T>(Backward::u), *dy = launch.data<const T>(Backward::dy);
    write_elements<T>(launch, du, launch.flag(accumulate_du),
                      [=](std::int64_t i) { return float(dy[i]) * leaky_relu_squared_slope(u[i], below); });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::leaky_relu_squared_kernels
