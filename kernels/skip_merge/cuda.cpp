#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/skip_merge/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "skip_merge/cuda.cu.inc"

struct Forward : shapes::SkipMergeForward {
  static void plan(CudaCall& call) {
    sdk::plan_rows(call, x, {x, s, weight, gate, y}, {.values = 4, .most_groups = 16 * sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     call.launch(MLG_INSTANCE(skip_merge_fwd, T, N), rows, x, s, weight, gate, y, rows.rows,
                                 rows.rows_per_group);
                   });
  }
};

struct Backward : shapes::SkipMergeBackward {
  static void plan(CudaCall& call) {
    call.flags({accumulate_dx, accumulate_ds});
    sdk::plan_rows(call, x, {x, s, weight, gate, dy, dx, ds}, {.values = 7, .most_blocks = sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     const sdk::ColumnSums of_weight(call, dweight, rows.blocks),
                         of_gate(call, dgate, rows.blocks);
                     call.launch(MLG_INSTANCE(skip_merge_bwd, T, N), rows, x, s, weight, gate, dy, dx, ds,
                                 of_weight.partial(), of_gate.partial(), rows.rows, rows.rows_per_group);
                     of_weight.add(call, MLG_INSTANCE(add_column_sums));
                     of_gate.add(call, MLG_INSTANCE(add_column_sums));
                   });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
