// Launches of fixed_matmul.cu.
#include "plugins/backends/cuda/kernels/invariant_kernels.h"

#include <mulligan/cuda_kernel.hpp>

#include "plugins/backends/common/shapes/matmul_add.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/fixed_matmul.cu"

constexpr char kSource[] =
#include "fixed_matmul.cu.inc"
    ;

using sdk::CudaCall;

// `term`, `result`: arguments of the call.
template <typename Shape>
void plan_product(CudaCall& call, std::uint32_t term, std::uint32_t result) {
  const shapes::Matmul::Extents e = Shape::extents(call);
  for (const std::int64_t extent : {e.m, e.n, e.k}) {
    call.require(extent < (std::int64_t{1} << 31) - kExtent, Shape::a,
                 "must have extents below 2^31 on the cuda backend");
  }
  call.constant("transpose_a", e.transpose_a);
  call.constant("transpose_b", e.transpose_b);
  call.numbers({Shape::alpha, Shape::beta});
  const auto blocks = [](std::int64_t extent) { return (extent + kExtent - 1) / kExtent; };
  sdk::dispatch_cuda(call.dtype(Shape::a), [&]<typename T>() {
    const auto launch = [&]<typename C>() {
      call.launch(MLG_INSTANCE(fixed_matmul, T, C), {blocks(e.m) * blocks(e.n), e.batch, 1}, {kThreads, 1, 1},
                  call.tensor(Shape::a), call.tensor(Shape::b), call.tensor(term), call.tensor(result),
                  static_cast<int>(e.m), static_cast<int>(e.n), static_cast<int>(e.k));
    };
    if (call.dtype(result) == MLG_F32) {
      launch.template operator()<float>();
    } else {
      launch.template operator()<T>();
    }
  });
}

struct Product : shapes::Matmul {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    plan_product<shapes::Matmul>(call, c, c);
  }
};

struct ProductAdd : shapes::MatmulAdd {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    plan_product<shapes::MatmulAdd>(call, term, c);
  }
};

const mlg_kernel kernels[] = {sdk::cuda_kernel<Product>(), sdk::cuda_kernel<ProductAdd>()};

}  // namespace

std::span<const mlg_kernel> fixed_product_kernels() {
  return kernels;
}

}  // namespace mulligan::cuda
