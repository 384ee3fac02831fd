#include "kernels/matmul/cuda.h"

#include <algorithm>

#include "kernels/matmul/signature_add.h"

namespace mulligan::cuda {
namespace {

using shapes::Matmul;
using shapes::MatmulAdd;

template <typename Shape>
constexpr mlg_kernel entry() {
  return {Shape::name, "cuda", Shape::signature, nullptr, nullptr, nullptr, nullptr};
}

constexpr mlg_kernel kernels[] = {entry<Matmul>(), entry<MatmulAdd>()};

bool adds(const mlg_kernel& kernel) {
  return kernel.name == kernels[1].name;
}

}  // namespace

std::span<const mlg_kernel> matmul_kernels() {
  return kernels;
}

bool is_matmul(const mlg_kernel& kernel) {
  return !kernel.prepare &&
         std::ranges::any_of(kernels, [&](const mlg_kernel& own) { return own.name == kernel.name; });
}

MatmulArguments matmul_arguments(const mlg_kernel& kernel) {
  if (adds(kernel)) return {MatmulAdd::a, MatmulAdd::b, MatmulAdd::term, MatmulAdd::c};
  return {Matmul::a, Matmul::b, Matmul::c, Matmul::c};
}

GemmShape gemm_shape(const mlg_kernel& kernel, const mlg_launch& launch) {
  const sdk::CallChecks call(kernel.name, kernel.signature, &launch);
  if (adds(kernel)) {
    MatmulAdd::check(call);
  } else {
    Matmul::check(call);
  }
  const Matmul::Extents e = Matmul::extents(call);
  GemmShape shape;
  shape.batch = e.batch;
  shape.m = e.m;
  shape.n = e.n;
  shape.k = e.k;
  shape.transpose_a = e.transpose_a;
  shape.transpose_b = e.transpose_b;
  shape.alpha = call.attribute(Matmul::alpha);
  shape.beta = call.attribute(Matmul::beta);
  shape.input = call.dtype(Matmul::a);
  shape.output = call.dtype(matmul_arguments(kernel).c);
  return shape;
}

}  // namespace mulligan::cuda
