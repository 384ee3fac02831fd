// matmul: c = alpha op(a) op(b) + beta c, by tiles (tiled_product.h).
//
// Determinism: tiles and the order of their sums follow from the shape.
#include "plugins/backends/common/shapes/matmul.h"

#include "plugins/backends/cpu/kernels/tiled_product.h"

namespace mulligan::cpu {
namespace {

struct Matmul : shapes::Matmul {
  using State = TiledProduct;
  static std::unique_ptr<TiledProduct> prepare(sdk::CallChecks& call) {
    check(call);
    const Extents e = extents(call);
    ProductShape shape;
    shape.batch = e.batch;
    shape.m = e.m;
    shape.n = e.n;
    shape.k = e.k;
    shape.transpose_a = e.transpose_a;
    shape.transpose_b = e.transpose_b;
    shape.input_bf16 = call.dtype(a) == MLG_BF16;
    shape.output_bf16 = call.dtype(c) == MLG_BF16;
    shape.alpha = static_cast<float>(call.attribute(alpha));
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

const Register registered = sdk::cpu_kernel<Matmul>();

}  // namespace
}  // namespace mulligan::cpu
