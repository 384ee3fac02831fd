// rational_softcap, element by element, with r = 1 / sqrt(z^2 + cap^2):  y = cap z r, in f32
//   dz (+)= dy (cap r)^3
//
// Determinism: elements are independent.
#include <cmath>

#include "kernels/rational_softcap/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::rational_softcap {
namespace {

// cap / sqrt(z^2 + cap^2)
inline float shrinkage(float z, float cap) {
  return cap / std::sqrt(z * z + cap * cap);
}

struct Forward : shapes::RationalSoftcapForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto cap = launch.number(Forward::cap);
    const T* z = launch.data<const T>(Forward::z);
    write_elements<float>(launch, y, false,
                          [=](std::int64_t i) { return float(z[i]) * shrinkage(float(z[i]), cap); });
  }
};

struct Backward : shapes::RationalSoftcapBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto cap = launch.number(Backward::cap);
    const T* z = launch.data<const T>(Backward::z);
    const float* dy = launch.data<const float>(Backward::dy);
    write_elements<T>(launch, dz, launch.flag(accumulate_dz), [=](std::int64_t i) {
      const float shrunk = shrinkage(float(z[i]), cap);
      return dy[i] * (shrunk * shrunk * shrunk);
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::rational_softcap
