// matmul: c = alpha op(a) op(b) + beta c, by tiles (tiled_matmul.h); matmul_add: the same with a term in place
// of c.
//
// Determinism: tiles and the order of their sums follow from the shape.
#include "kernels/matmul/signature_add.h"
#include "plugins/backends/cpu/math/tiled_matmul.h"

namespace mulligan::cpu::matmul {
namespace {

// Of the arguments of a call whose result is the argument `result`.
std::unique_ptr<TiledMatmul> make_tiled_matmul(const Launch& call, std::uint32_t result) {
  using shapes::Matmul;
  const Matmul::Extents e = Matmul::extents(call);
  TiledMatmulShape shape{e.batch, e.m, e.n, e.k, e.transpose_a, e.transpose_b};
  shape.input = call.dtype(Matmul::a);
  shape.output = call.dtype(result);
  shape.alpha = call.number(Matmul::alpha);
  shape.beta = call.number(Matmul::beta);
  return std::make_unique<TiledMatmul>(shape);
}

struct Matmul : shapes::Matmul {
  using State = TiledMatmul;
  static std::unique_ptr<TiledMatmul> prepare(const Launch& call) { return make_tiled_matmul(call, c); }
  static void run(const Launch& launch) {
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                           launch.tensor(c).data);
  }
};

struct MatmulAdd : shapes::MatmulAdd {
  using State = TiledMatmul;
  static std::unique_ptr<TiledMatmul> prepare(const Launch& call) { return make_tiled_matmul(call, c); }
  static void run(const Launch& launch) {
    const void* added = launch.flag(beta) ? launch.tensor(term).data : nullptr;
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                           launch.tensor(c).data, {}, added);
  }
};

const Register registered[] = {sdk::cpu_kernel<Matmul>(), sdk::cpu_kernel<MatmulAdd>()};

}  // namespace
}  // namespace mulligan::cpu::matmul
