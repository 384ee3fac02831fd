// Launches of radius_step.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/common/radius_step.h"

namespace mulligan::optimizers {
namespace {

#include "radius_step.cu.inc"

using sdk::CudaCall;

struct Step : RadiusStep {
  static void plan(CudaCall& call) {
    const MatrixShape shape = MatrixShape::of(call, direction);
    call.constant("columns", shape.columns);
    call.constant("matrix_rows", shape.rows);
    call.constant("floor_kind", static_cast<std::int64_t>(call.attribute(RadiusStep::floor)));
    call.constant("pin_kind", static_cast<std::int64_t>(call.attribute(pin)));
    call.numbers({lr_multiplier, RadiusStep::scale, outward, floor_ratio, cautious_decay, eps});
    sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
      sdk::dispatch_cuda_master(call.dtype(master),
                                [&]<typename Master>() { plan_typed<Direction, Master>(call, shape); });
    });
  }

 private:
  template <typename Direction, typename Master>
  static void plan_typed(CudaCall& call, const MatrixShape& shape) {
    const sdk::ElementPlan plan{call.size(direction), 1};
    const auto rows = static_cast<std::size_t>(shape.all_rows());
    const sdk::CudaArgument sums = call.workspace(3 * rows * sizeof(double)),
                            outcome = call.floats(3 * shape.all_rows());
    call.launch(MLG_INSTANCE(radius_rows, Direction, Master), {shape.all_rows(), 1, 1},
                {MatrixShape::block_threads(shape.columns), 1, 1}, direction, master, sums);
    call.launch(MLG_INSTANCE(radius_settle), {shape.matrices, 1, 1},
                {MatrixShape::block_threads(shape.rows), 1, 1}, sums, scalars, outcome);
    call.launch(MLG_INSTANCE(radius_apply, Direction, Master), plan, direction, master, scalars, outcome,
                plan.count);
  }
};

}  // namespace

constinit const mlg_kernel radius_step_cuda = sdk::cuda_kernel<Step>(kSource);

}  // namespace mulligan::optimizers
