// matmul: c = alpha op(a) op(b) + beta c, by tiles (tiled_matmul.h); matmul_add: the same with a term in place
// of c.
//
// Determinism: tiles and the order of their sums follow from the shape.
#include "kernels/matmul/signature_add.h"
#include "plugins/backends/cpu/math/tiled_matmul.h"

namespace mulligan::cpu::matmul {
namespace {

// Of the arguments of a call whose result is the argument `result`.
std::unique_ptr<TiledMatmul> make_tiled_matmul(sdk::CallChecks& call, std::uint32_t result) {
  using shapes::Matmul;
  const Matmul::Extents e = Matmul::extents(call);
  TiledMatmulShape shape;
  shape.batch = e.batch;
  shape.m = e.m;
  shape.n = e.n;
  shape.k = e.k;
  shape.transpose_a = e.transpose_a;
  shape.transpose_b = e.transpose_b;
  shape.input = call.Launch::dtype(Matmul::a);
  shape.output = call.Launch::dtype(result);
  shape.alpha = static_cast<float>(call.attribute(Matmul::alpha));
  shape.beta = static_cast<float>(call.attribute(Matmul::beta));
  auto matmul = std::make_unique<TiledMatmul>(shape);
  call.workspace(matmul->workspace_bytes());
  return matmul;
}

struct Matmul : shapes::Matmul {
  using State = TiledMatmul;
  static std::unique_ptr<TiledMatmul> prepare(sdk::CallChecks& call) {
    check(call);
    return make_tiled_matmul(call, c);
  }
  static void run(const Launch& launch) {
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                           launch.tensor(c).data);
  }
};

struct MatmulAdd : shapes::MatmulAdd {
  using State = TiledMatmul;
  static std::unique_ptr<TiledMatmul> prepare(sdk::CallChecks& call) {
    check(call);
    return make_tiled_matmul(call, c);
  }
  static void run(const Launch& launch) {
    const void* added = launch.attribute(beta) != 0 ? launch.tensor(term).data : nullptr;
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                           launch.tensor(c).data, {}, added);
  }
};

const Register registered[] = {sdk::cpu_kernel<Matmul>(), sdk::cpu_kernel<MatmulAdd>()};

}  // namespace
}  // namespace mulligan::cpu::matmul
