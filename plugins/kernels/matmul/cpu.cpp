// matmul: c = alpha op(a) op(b) + beta c, by tiles (tiled_product.h); matmul_add: the same, into a copy of
// its term.
//
// Determinism: tiles and the order of their sums follow from the shape.
#include <cstring>

#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/tiled_product.h"
#include "plugins/kernels/matmul/signature_add.h"

namespace mulligan::cpu::matmul {
namespace {

// Of the arguments of a call whose result is the argument `result`.
std::unique_ptr<TiledProduct> make_product(sdk::CallChecks& call, std::uint32_t result) {
  using shapes::Matmul;
  const Matmul::Extents e = Matmul::extents(call);
  ProductShape shape;
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
  auto product = std::make_unique<TiledProduct>(shape);
  call.workspace(product->workspace_bytes());
  return product;
}

struct Matmul : shapes::Matmul {
  using State = TiledProduct;
  static std::unique_ptr<TiledProduct> prepare(sdk::CallChecks& call) {
    check(call);
    return make_product(call, c);
  }
  static void run(const Launch& launch) {
    launch.state<const TiledProduct>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                            launch.tensor(c).data);
  }
};

struct MatmulAdd : shapes::MatmulAdd {
  using State = TiledProduct;
  static std::unique_ptr<TiledProduct> prepare(sdk::CallChecks& call) {
    check(call);
    return make_product(call, c);
  }
  static void run(const Launch& launch) {
    if (launch.attribute(beta) != 0) copy_term(launch);
    launch.state<const TiledProduct>()->run(launch, launch.tensor(a).data, launch.tensor(b).data,
                                            launch.tensor(c).data);
  }

 private:
  static void copy_term(const Launch& launch) {
    const auto bytes = static_cast<std::int64_t>(sdk::dtype_bytes(launch.dtype(c)));
    const char* from = launch.data<const char>(term);
    char* to = launch.data<char>(c);
    for_elements(launch, launch.size(c), [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin * bytes, from + begin * bytes, static_cast<std::size_t>((end - begin) * bytes));
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Matmul>(), sdk::cpu_kernel<MatmulAdd>()};

}  // namespace
}  // namespace mulligan::cpu::matmul
