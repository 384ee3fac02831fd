// axpby, element by element: y (+)= alpha a + beta b; tensors f32 or bf16, or f32 or f16; b may be absent.
//
// Determinism: elements are independent.
#include "kernels/axpby/signature.h"

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::axpby {
namespace {

struct Axpby : shapes::Axpby {
  static void run(const Launch& launch) {
    const auto alpha = launch.number(Axpby::alpha), beta = launch.number(Axpby::beta);
    const bool accumulate = launch.flag(Axpby::accumulate_y);
    const auto run_typed = [&]<typename A, typename B, typename Y>() {
      const A* a = launch.data<const A>(Axpby::a);
      const B* b = launch.data<const B>(Axpby::b);
      if (!b)
        return write_elements<Y>(launch, y, accumulate, [=](std::int64_t i) { return alpha * float(a[i]); });
      write_elements<Y>(launch, y, accumulate,
                        [=](std::int64_t i) { return alpha * float(a[i]) + beta * float(b[i]); });
    };
    if (narrow_dtype(launch) == MLG_F16) {
      dispatch<float16>(launch, run_typed);
    } else {
      dispatch<bfloat16>(launch, run_typed);
    }
  }
};

const Register registered = sdk::cpu_kernel<Axpby>();

}  // namespace
}  // namespace mulligan::cpu::axpby
