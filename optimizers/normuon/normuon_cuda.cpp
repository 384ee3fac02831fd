// Launches of normuon_kernels.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/normuon/normuon_kernels.h"

namespace mulligan::optimizers {
namespace {

#include "normuon_kernels.cu.inc"

using sdk::CudaCall;

void shape_constants(CudaCall& call, const MatrixShape& shape) {
  call.constant("matrix_rows", shape.rows);
  call.constant("columns", shape.columns);
}

struct Factors : NormuonFactors {
  static void plan(CudaCall& call) {
    const MatrixShape shape = MatrixShape::of(call, direction);
    const bool tall = shape.rows >= shape.columns;
    const std::int64_t lines = std::max(shape.rows, shape.columns);
    shape_constants(call, shape);
    call.numbers({beta2, scale});
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    const sdk::CudaArgument sums =
        call.workspace(static_cast<std::size_t>(shape.matrices * lines) * sizeof(double));
    sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
      if (tall) {
        call.launch(MLG_INSTANCE(normuon_row_squares, Direction), {shape.all_rows(), 1, 1},
                    {MatrixShape::block_threads(shape.columns), 1, 1}, direction, sums);
      } else {
        const sdk::ElementPlan plan{shape.matrices * lines, 1};
        call.launch(MLG_INSTANCE(normuon_column_squares, Direction), plan, direction, sums, plan.count);
      }
    });
    call.launch(MLG_INSTANCE(normuon_settle), {shape.matrices, 1, 1},
                {MatrixShape::block_threads(lines), 1, 1}, sums, second_moment, factors);
  }
};

struct Apply : NormuonApply {
  static void plan(CudaCall& call) {
    shape_constants(call, MatrixShape::of(call, direction));
    call.numbers({lr_multiplier, weight_decay, scale});
    const sdk::ElementPlan plan{call.size(direction), 1};
    sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
      sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
        call.launch(MLG_INSTANCE(normuon_apply, Direction, Master), plan, direction, factors, master, scalars,
                    plan.count);
      });
    });
  }
};

}  // namespace

constinit const mlg_kernel normuon_factors_cuda = sdk::cuda_kernel<Factors>(kSource);
constinit const mlg_kernel normuon_apply_cuda = sdk::cuda_kernel<Apply>(kSource);

}  // namespace mulligan::optimizers
