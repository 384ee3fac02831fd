// Launches of schatten.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/common/schatten.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/common/schatten.cu"

constexpr char kSource[] =
#include "schatten.cu.inc"
    ;

using sdk::CudaCall;

struct Norm : GramNorm {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check_arguments(call);
    const MatrixShape shape = MatrixShape::of(call, gram);
    call.constant("elements", shape.elements());
    call.launch(MLG_INSTANCE(gram_norm), {shape.matrices, 1, 1}, {1024, 1, 1}, call.tensor(gram),
                call.tensor(norm));
  }
};

struct Divide : DivideByNorm {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("elements", MatrixShape::of(call, x).elements());
    call.constant("floor_value", call.attribute(floor));
    const sdk::ElementPlan plan{call.size(x), 1};
    sdk::dispatch_cuda_master(call.dtype(x), [&]<typename X>() {
      sdk::dispatch_cuda_master(call.dtype(y), [&]<typename Y>() {
        call.launch(MLG_INSTANCE(divide_by_norm, X, Y), plan.grid(), plan.block(), call.tensor(x),
                    call.tensor(norm), call.tensor(y), plan.count);
      });
    });
  }
};

}  // namespace

mlg_kernel gram_norm_cuda() {
  return sdk::cuda_kernel<Norm>();
}
mlg_kernel divide_by_norm_cuda() {
  return sdk::cuda_kernel<Divide>();
}

}  // namespace mulligan::optimizers
