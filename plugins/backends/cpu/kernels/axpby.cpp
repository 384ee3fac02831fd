// axpby, element by element:  y (+)= alpha a + beta b; each tensor f32 or bf16, b may be absent.
//
// Determinism: elements are independent.
#include "plugins/backends/common/shapes/axpby.h"

#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

enum { kA = shapes::Axpby::a, kB, kY };

void run(const Launch& launch) {
  const auto alpha = static_cast<float>(launch.attribute(0)), beta = static_cast<float>(launch.attribute(1));
  const bool accumulate = launch.attribute(2) != 0;
  for_elements(launch, launch.size(kA), [&](std::int64_t begin, std::int64_t end) {
    dispatch_compute(launch.dtype(kA), [&]<typename A>() {
      dispatch_compute(launch.dtype(kY), [&]<typename Y>() {
        const A* a = launch.data<const A>(kA) + begin;
        Y* y = launch.data<Y>(kY) + begin;
        if (!launch.has(kB)) {
          write_row(y, end - begin, accumulate, [=](std::int64_t i) { return alpha * float(a[i]); });
          return;
        }
        dispatch_compute(launch.dtype(kB), [&]<typename B>() {
          const B* b = launch.data<const B>(kB) + begin;
          write_row(y, end - begin, accumulate,
                    [=](std::int64_t i) { return alpha * float(a[i]) + beta * float(b[i]); });
        });
      });
    });
  });
}

MULLIGAN_CPU_KERNEL(axpby, shapes::Axpby::signature, shapes::Axpby::check, run)

}  // namespace
}  // namespace mulligan::cpu
