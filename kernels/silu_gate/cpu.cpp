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
  static void run(const Launch& launch);
};
struct Backward : shapes::SiluGateBackward {
  static void run(const Launch& launch);
};

void Forward::run(const Launch& launch) {
  dispatch_compute(launch.dtype(Forward::g), [&]<typename T>() {
    for_elements(launch, launch.size(Forward::g), [&](std::int64_t begin, std::int64_t end) {
      const T* g = launch.data<const T>(Forward::g) + begin;
      const T* u = launch.data<const T>(Forward::u) + begin;
      write_row(launch.data<T>(Forward::y) + begin, end - begin, false,
                [=](std::int64_t i) { return float(g[i]) * sdk::fast_sigmoid(float(g[i])) * float(u[i]); });
    });
  });
}

void Backward::run(const Launch& launch) {
  dispatch_compute(launch.dtype(Backward::g), [&]<typename T>() {
    for_elements(launch, launch.size(Backward::g), [&](std::int64_t begin, std::int64_t end) {
      const T* g = launch.data<const T>(Backward::g) + begin;
      const T* u = launch.data<const T>(Backward::u) + begin;
      const T* dy = launch.data<const T>(Backward::dy) + begin;
      if (launch.has(Backward::dg)) {
        write_row(launch.data<T>(Backward::dg) + begin, end - begin,
                  launch.attribute(Backward::accumulate_dg) != 0, [=](std::int64_t i) {
                    const float s = sdk::fast_sigmoid(float(g[i]));
                    return float(dy[i]) * float(u[i]) * s * (1.0f + float(g[i]) * (1.0f - s));
                  });
      }
      if (!launch.has(Backward::du)) return;
      write_row(launch.data<T>(Backward::du) + begin, end - begin,
                launch.attribute(Backward::accumulate_du) != 0,
                [=](std::int64_t i) { return float(dy[i]) * float(g[i]) * sdk::fast_sigmoid(float(g[i])); });
    });
  });
}

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::silu_gate
