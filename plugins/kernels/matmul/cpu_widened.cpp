// widened_matmul: c = a op(b) + beta c with b in 16 bits. Each tile of matmul (tiled_product.h) widens its part of b first.
// f32 holds every number of bf16 and f16, so only the matmul itself rounds.
//
// Determinism: as of matmul, whose bits it has for the widened b.
#include "plugins/kernels/matmul/signature_widened.h"

#include "plugins/backends/cpu/math/tiled_product.h"

namespace mulligan::cpu::widened_matmul {
namespace {

struct WidenedMatmul : shapes::WidenedMatmul {
  using State = TiledProduct;
  static std::unique_ptr<TiledProduct> prepare(sdk::CallChecks& call) {
    check(call);
    const Extents e = extents(call);
    ProductShape shape;
    shape.m = e.m;
    shape.n = e.n;
    shape.k = e.k;
    shape.transpose_b = call.attribute(transpose_b) != 0;
    shape.stored_b = call.Launch::dtype(b);
    shape.beta = static_cast<float>(call.attribute(beta));
    auto product = std::make_unique<TiledProduct>(shape);
    call.workspace(product->workspace_bytes());
    return product;
  }
  static void run(const Launch& launch) {
    launch.state<const TiledProduct>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                            launch.tensor(c).data);
  }
};

const Register registered = sdk::cpu_kernel<WidenedMatmul>();

}  // namespace
}  // namespace mulligan::cpu::widened_matmul
