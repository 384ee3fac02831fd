// Launches of fixed_matmul.cu.
#include <mulligan/cuda_kernel.hpp>

#include "plugins/backends/common/core_kernels.h"
#include "plugins/backends/common/shapes/matmul_add.h"
#include "plugins/backends/common/shapes/widened_matmul.h"
#include "plugins/backends/cuda/kernels/invariant_kernels.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/fixed_matmul.cu"

constexpr char kSource[] =
#include "fixed_matmul.cu.inc"
    ;

using sdk::CudaCall;
using Extents = shapes::Matmul::Extents;

// Arguments of the call.
struct Operands {
  std::uint32_t a, b, term, c;
};

template <typename A, typename B, typename C>
void launch_product(CudaCall& call, const Operands& of, const Extents& e) {
  const auto require_int = [&](std::int64_t extent, std::uint32_t argument) {
    call.require(extent < (std::int64_t{1} << 31) - kExtent, argument,
                 "must have extents below 2^31 on the cuda backend");
  };
  require_int(e.m, of.a);
  require_int(e.k, of.a);
  require_int(e.n, of.b);
  call.constant("transpose_a", e.transpose_a);
  call.constant("transpose_b", e.transpose_b);
  const auto blocks = [](std::int64_t extent) { return (extent + kExtent - 1) / kExtent; };
  call.launch(MLG_INSTANCE(fixed_matmul, A, B, C), {blocks(e.m) * blocks(e.n), e.batch, 1}, {kThreads, 1, 1},
              call.tensor(of.a), call.tensor(of.b), call.tensor(of.term), call.tensor(of.c),
              static_cast<int>(e.m), static_cast<int>(e.n), static_cast<int>(e.k));
}

// matmul or matmul_add.
template <typename Shape>
void plan_product(CudaCall& call, const Operands& of) {
  call.numbers({Shape::alpha, Shape::beta});
  const Extents e = Shape::extents(call);
  sdk::dispatch_cuda(call.dtype(of.a), [&]<typename T>() {
    if (call.dtype(of.c) == MLG_F32) {
      launch_product<T, T, float>(call, of, e);
    } else {
      launch_product<T, T, T>(call, of, e);
    }
  });
}

struct Product : shapes::Matmul {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    plan_product<shapes::Matmul>(call, {a, b, c, c});
  }
};

struct ProductAdd : shapes::MatmulAdd {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    plan_product<shapes::MatmulAdd>(call, {a, b, term, c});
  }
};

struct WidenedProduct : shapes::WidenedMatmul {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("alpha", 1.0);
    call.numbers({beta});
    const auto [m, n, k] = extents(call);
    const Extents e{1, m, n, k, false, call.attribute(transpose_b) != 0};
    if (call.dtype(b) == MLG_BF16) {
      launch_product<float, bf16, float>(call, {a, b, c, c}, e);
    } else {
      launch_product<float, f16, float>(call, {a, b, c, c}, e);
    }
  }
};

const backends::Register registered(sdk::cuda_kernel<WidenedProduct>());
const mlg_kernel kernels[] = {sdk::cuda_kernel<Product>(), sdk::cuda_kernel<ProductAdd>()};

}  // namespace

std::span<const mlg_kernel> fixed_product_kernels() {
  return kernels;
}

}  // namespace mulligan::cuda
