#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/row_bias/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "row_bias/cuda.cu.inc"

struct Forward : shapes::RowBiasForward {
  static void plan(CudaCall& call) {
    sdk::plan_rows(call, y, {x, bias, y}, {.values = 2, .most_groups = 16 * sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     call.launch(MLG_INSTANCE(row_bias_fwd, T, N), rows, x, bias, y, rows.rows,
                                 rows.rows_per_group);
                   });
  }
};

struct Backward : shapes::RowBiasBackward {
  static void plan(CudaCall& call) {
    sdk::plan_rows(call, dy, {dy}, {.values = 2, .most_blocks = sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     const sdk::ColumnSums sums(call, dbias, rows.blocks);
                     call.launch(MLG_INSTANCE(row_bias_bwd, T, N), rows, dy, sums.partial(), rows.rows,
                                 rows.rows_per_group);
                     sums.add(call, MLG_INSTANCE(add_column_sums));
                   });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
