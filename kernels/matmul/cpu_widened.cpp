// widened_matmul: c = a op(b) + beta c with b in 16 bits. Each tile of matmul (tiled_matmul.h) widens its part of b first.
// f32 holds every number of bf16 and f16, so only the matmul itself rounds.
//
// Determinism: as of matmul, whose bits it has for the widened b.
#include "kernels/matmul/signature_widened.h"

#include "plugins/backends/cpu/math/tiled_matmul.h"

namespace mulligan::cpu::widened_matmul {
namespace {

struct WidenedMatmul : shapes::WidenedMatmul {
  using State = TiledMatmul;
  static std::unique_ptr<TiledMatmul> prepare(const Launch& call) {
    const Extents e = extents(call);
    TiledMatmulShape shape;
    shape.m = e.m;
    shape.n = e.n;
    shape.k = e.k;
    shape.transpose_b = call.flag(transpose_b);
    shape.stored_b = call.dtype(b);
    shape.beta = call.number(beta);
    return std::make_unique<TiledMatmul>(shape);
  }
  static void run(const Launch& launch) {
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                           launch.tensor(c).data);
  }
};

const Register registered = sdk::cpu_kernel<WidenedMatmul>();

}  // namespace
}  // namespace mulligan::cpu::widened_matmul
