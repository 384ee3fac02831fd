#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/weighted_rms_norm/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "weighted_rms_norm/cuda.cu.inc"

struct Forward : shapes::WeightedRmsNormForward {
  static void plan(CudaCall& call) {
    call.numbers({eps});
    sdk::plan_rows(call, x, {x, weight, y}, {.values = 2}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
      call.launch(MLG_INSTANCE(weighted_rms_norm_fwd, T, N), rows, x, weight, y, rows.rows);
    });
  }
};

struct Backward : shapes::WeightedRmsNormBackward {
  static void plan(CudaCall& call) {
    call.numbers({eps});
    call.flags({accumulate_dx});
    sdk::plan_rows(call, x, {x, weight, dy, dx}, {.values = 5, .most_blocks = sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     const sdk::ColumnSums sums(call, dweight, rows.blocks);
                     call.launch(MLG_INSTANCE(weighted_rms_norm_bwd, T, N), rows, x, weight, dy, dx,
                                 sums.partial(), rows.rows, rows.rows_per_group);
                     sums.add(call, MLG_INSTANCE(add_column_sums));
                   });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
