#include "plugins/backends/cuda/kernels/matmul.h"

#include "plugins/backends/common/shapes/matmul.h"

namespace mulligan::cuda {

const mlg_kernel& matmul_kernel() {
  using shapes::Matmul;
  static const mlg_kernel kernel{Matmul::name, "cuda",  Matmul::signature, nullptr,
                                 nullptr,      nullptr, nullptr,           nullptr};
  return kernel;
}

bool is_matmul(const mlg_kernel& kernel) {
  return kernel.name == matmul_kernel().name && !kernel.prepare;
}

GemmShape gemm_shape(const mlg_kernel& kernel, const mlg_launch& launch) {
  using shapes::Matmul;
  const sdk::CallChecks call(kernel.name, kernel.signature, &launch);
  Matmul::check(call);
  const Matmul::Extents e = Matmul::extents(call);
  GemmShape shape;
  shape.batch = e.batch;
  shape.m = e.m;
  shape.n = e.n;
  shape.k = e.k;
  shape.stride_a = e.m * e.k;
  shape.stride_b = e.k * e.n;
  shape.stride_c = e.m * e.n;
  shape.transpose_a = e.transpose_a;
  shape.transpose_b = e.transpose_b;
  shape.alpha = call.attribute(Matmul::alpha);
  shape.beta = call.attribute(Matmul::beta);
  shape.input = call.dtype(Matmul::a);
  shape.output = call.dtype(Matmul::c);
  return shape;
}

}  // namespace mulligan::cuda
