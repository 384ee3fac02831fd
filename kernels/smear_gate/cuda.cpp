#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/smear_gate/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "smear_gate/cuda.cu.inc"

void give_constants(CudaCall& call) {
  using Shape = shapes::SmearGate;
  call.constant("window", call.dim(Shape::weight, 1));
  call.constant("row_length", static_cast<std::int64_t>(call.attribute(Shape::row_length)));
  call.constant("document_start", static_cast<std::int64_t>(call.attribute(Shape::document_start)));
}

struct Forward : shapes::SmearGateForward {
  static void plan(CudaCall& call) {
    give_constants(call);
    sdk::plan_rows(call, x, {x, y}, {.values = 3, .most_groups = 16 * sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     call.launch(MLG_INSTANCE(smear_gate_fwd, T, N), rows, x, tokens, weight, lambda, y,
                                 rows.rows, rows.rows_per_group);
                   });
  }
};

struct Backward : shapes::SmearGateBackward {
  static void plan(CudaCall& call) {
    give_constants(call);
    call.flags({accumulate_dx});
    sdk::plan_rows(call, x, {x, dy, dx}, {.values = 5, .most_blocks = sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     const sdk::ColumnSums of_weight(call, dweight, rows.groups),
                         of_lambda(call, dlambda, rows.groups);
                     call.launch(MLG_INSTANCE(smear_gate_bwd, T, N), rows, x, tokens, weight, lambda, dy, dx,
                                 of_weight.partial(), of_lambda.partial(), rows.rows, rows.rows_per_group);
                     of_weight.add(call, MLG_INSTANCE(add_column_sums));
                     of_lambda.add(call, MLG_INSTANCE(add_column_sums));
                   });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
