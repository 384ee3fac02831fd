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
    for_elements(launch, launch.size(Forward::z), [&](std::int64_t begin, std::int64_t end) {
      const T* z = launch.data<const T>(Forward::z) + begin;
      write_row(launch.data<float>(Forward::y) + begin, end - begin, false,
                [=](std::int64_t i) { return float(z[i]) * shrinkage(float(z[i]), cap); });
    });
  }
};

struct Backward : shapes::RationalSoftcapBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto cap = launch.number(Backward::cap);
    for_elements(launch, launch.size(Backward::z), [&](std::int64_t begin, std::int64_t end) {
      const T* z = launch.data<const T>(Backward::z) + begin;
      const float* dy = launch.data<const float>(Backward::dy) + begin;
      write_row(launch.data<T>(Backward::dz) + begin, end - begin, launch.flag(Backward::accumulate_dz),
                [=](std::int64_t i) {
                  const float shrunk = shrinkage(float(z[i]), cap);
                  return dy[i] * (shrunk * shrunk * shrunk);
                });
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::rational_softcap
