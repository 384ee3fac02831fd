#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/residual_mix_norm/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "residual_mix_norm/cuda.cu.inc"

struct Forward : shapes::ResidualMixNormForward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    sdk::plan_rows(
        call, x, {x, x0, mix, y, n}, {.values = 2}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
          call.launch(MLG_INSTANCE(residual_mix_norm_fwd, T, N), rows, x, x0, mix, y, n, rows.rows);
        });
  }
};

struct Backward : shapes::ResidualMixNormBackward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.flags({accumulate_dx, accumulate_dx0});
    sdk::plan_rows(call, x, {x, x0, mix, dy, dn, dx, dx0}, {.values = 8, .most_blocks = sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     const sdk::ColumnSums sums(call, dmix, rows.blocks);
                     call.launch(MLG_INSTANCE(residual_mix_norm_bwd, T, N), rows, x, x0, mix, dy, dn, dx, dx0,
                                 sums.partial(), rows.rows, rows.rows_per_group);
                     sums.add(call, MLG_INSTANCE(add_column_sums));
                   });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
