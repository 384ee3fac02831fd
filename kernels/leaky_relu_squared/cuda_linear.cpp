// linear_leaky_relu_squared without a compiled kernel in its place (docs/triton.md). The library's matmul runs first, and
// then the launch of leaky_relu_squared.cu on its result, in place if possible. The plain calls do the same.
#include "kernels/leaky_relu_squared/cuda_linear.h"

#include <mulligan/cuda/element_plan.hpp>

#include "kernels/leaky_relu_squared/signature_linear.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "leaky_relu_squared/cuda.cu.inc"

struct Forward : shapes::LinearLeakyReluSquaredForward {
  static void plan(CudaCall& call) {
    call.numbers({slope});
    const std::uint32_t before = call.has(u) ? u : y;
    sdk::dispatch_cuda(call.dtype(y), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {before, y}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(leaky_relu_squared_fwd, T, N), elements, call.tensor(before), y,
                    elements.count);
      });
    });
  }
};

struct Backward : shapes::LinearLeakyReluSquaredBackward {
  static void plan(CudaCall& call) {
    call.numbers({slope});
    call.constant("accumulate_du", false);
    sdk::dispatch_compute_elements(call, {u, du}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(leaky_relu_squared_bwd, T, N), elements, u, du, du, elements.count);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace

std::optional<MatmulBefore> matmul_before(const mlg_kernel& kernel, const mlg_launch& launch) {
  if (kernel.source != kSource) return std::nullopt;
  const bool forward = kernel.name == std::string_view(Forward::name);
  const sdk::Launch call(&launch);
  const std::uint32_t result = call.has(Forward::u) ? Forward::u : Forward::y;
  MatmulBefore matmul = {Forward::x, Forward::w, result, {}};
  if (!forward) matmul = {Backward::dy, Backward::w, Backward::du, {}};
  GemmShape& shape = matmul.shape;
  shape.m = call.dim(matmul.a, 0);
  shape.k = call.dim(matmul.a, 1);
  shape.n = call.dim(matmul.c, 1);
  shape.transpose_b = forward;
  shape.input = shape.output = call.dtype(matmul.a);
  return matmul;
}

}  // namespace mulligan::cuda
