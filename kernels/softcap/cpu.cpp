// softcap, element by element:  y = cap tanh(z / cap)
//   dz (+)= dy (1 - tanh(z / cap)^2)
//
// Determinism: elements are independent.
#include <mulligan/vector_math.hpp>

#include "kernels/softcap/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::softcap {
namespace {

struct Forward : shapes::SoftcapForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto cap = launch.number(Forward::cap);
    const float inverse = 1.0f / cap;
    const T* z = launch.data<const T>(Forward::z);
    write_elements<T>(launch, y, false,
                      [=](std::int64_t i) { return cap * sdk::fast_tanh(float(z[i]) * inverse); });
  }
};

struct Backward : shapes::SoftcapBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const float inverse = 1.0f / launch.number(Backward::cap);
    const T *z = launch.data<const T>(Backward::z), *dy = launch.data<const T>(Backward::dy);
    write_elements<T>(launch, dz, launch.flag(accumulate_dz), [=](std::int64_t i) {
      return float(dy[i]) * sdk::fast_tanh_and_slope(float(z[i]) * inverse).slope;
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::softcap
