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
  static std::unique_ptr<TiledMatmul> prepare(sdk::CallChecks& call) {
    check(call);
    const Extents e = extents(call);
    TiledMatmulShape shape;
    shape.m = e.m;
    shape.n = e.n;
    shape.k = e.k;
    shape.transpose_b = call.attribute(transpose_b) != 0;
    shape.stored_b = call.Launch::dtype(b);
    shape.beta = static_cast<float>(call.attribute(beta));
    auto matmul = std::make_unique<TiledMatmul>(shape);
    call.workspace(matmul->workspace_bytes());
    return matmul;
  }
  static void run(const Launch& launch) {
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                           launch.tensor(c).data);
  }
};

const Register registered = sdk::cpu_kernel<WidenedMatmul>();

}  // namespace
}  // namespace mulligan::cpu::widened_matmul
