// silu_gate, element by element:  with s = sigmoid(g):  y = g s u
//   dg (+)= dy u s (1 + g (1 - s)),  du (+)= dy g s
//
// Determinism: elements are independent.
#include <mulligan/vector_math.hpp>

#include "kernels/silu_gate/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::silu_gate {
namespace {

struct Forward : shapes::SiluGateForward {
  template <typename T>
  static void run(const Launch& launch) {
    const T *g = launch.data<const T>(Forward::g), *u = launch.data<const T>(Forward::u);
    write_elements<T>(launch, y, false, [=](std::int64_t i) {
      return float(g[i]) * sdk::fast_sigmoid(float(g[i])) * float(u[i]);
    });
  }
};

struct Backward : shapes::SiluGateBackward {
  template <typename T>
  static void run(const Launch& launch) {
    for_elements(launch, launch.size(Backward::g), [&](std::int64_t begin, std::int64_t end) {
      const T* g = launch.data<const T>(Backward::g) + begin;
      const T* u = launch.data<const T>(Backward::u) + begin;
      const T* dy = launch.data<const T>(Backward::dy) + begin;
      if (launch.has(Backward::dg)) {
        write_row(launch.data<T>(Backward::dg) + begin, end - begin, launch.flag(Backward::accumulate_dg),
                  [=](std::int64_t i) {
                    const float s = sdk::fast_sigmoid(float(g[i]));
                    return float(dy[i]) * float(u[i]) * s * (1.0f + float(g[i]) * (1.0f - s));
                  });
      }
      if (!launch.has(Backward::du)) return;
      write_row(launch.data<T>(Backward::du) + begin, end - begin, launch.flag(Backward::accumulate_du),
                [=](std::int64_t i) { return float(dy[i]) * float(g[i]) * sdk::fast_sigmoid(float(g[i])); });
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::silu_gate
