// linear_leaky_relu_squared without a compiled kernel in its place (docs/triton.md). The library's matmul runs first, and
// then the launch of leaky_relu_squared.cu on its result, in place if possible. The plain calls do the same.
#include "kernels/leaky_relu_squared/cuda_linear.h"

#include <mulligan/cuda/element_plan.hpp>

#include "kernels/leaky_relu_squared/signature_linear.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "kernels/leaky_relu_squared/cuda.cu"

constexpr char kSource[] =
#include "leaky_relu_squared/cuda.cu.inc"
    ;

struct Forward : shapes::LinearLeakyReluSquaredForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({slope});
    const std::uint32_t before = call.has(u) ? u : y;
    sdk::dispatch_cuda(call.dtype(y), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {before, y}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(leaky_relu_squared_fwd, T, N), elements.grid(), elements.block(),
                    call.tensor(before), call.tensor(y), elements.count);
      });
    });
  }
};

struct Backward : shapes::LinearLeakyReluSquaredBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({slope});
    call.constant("accumulate_du", false);
    sdk::dispatch_cuda(call.dtype(u), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {u, du}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(leaky_relu_squared_bwd, T, N), elements.grid(), elements.block(),
                    call.tensor(u), call.tensor(du), call.tensor(du), elements.count);
      });
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

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
