// Launches of schatten.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/common/schatten.h"

namespace mulligan::optimizers {
namespace {

#include "schatten.cu.inc"

using sdk::CudaCall;

struct Norm : GramNorm {
  static void plan(CudaCall& call) {
    const MatrixShape shape = MatrixShape::of(call, gram);
    call.constant("elements", shape.elements());
    call.launch(MLG_INSTANCE(gram_norm), {shape.matrices, 1, 1}, {1024, 1, 1}, gram, norm);
  }
};

struct Divide : DivideByNorm {
  static void plan(CudaCall& call) {
    call.constant("elements", MatrixShape::of(call, x).elements());
    call.constant("floor_value", call.attribute(floor));
    const sdk::ElementPlan plan{call.size(x), 1};
    sdk::dispatch_cuda_master(call.dtype(x), [&]<typename X>() {
      sdk::dispatch_cuda_master(call.dtype(y), [&]<typename Y>() {
        call.launch(MLG_INSTANCE(divide_by_norm, X, Y), plan, x, norm, y, plan.count);
      });
    });
  }
};

}  // namespace

constinit const mlg_kernel gram_norm_cuda = sdk::cuda_kernel<Norm>(kSource);
constinit const mlg_kernel divide_by_norm_cuda = sdk::cuda_kernel<Divide>(kSource);

}  // namespace mulligan::optimizers
