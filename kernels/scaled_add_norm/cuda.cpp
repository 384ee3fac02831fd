#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/scaled_add_norm/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "scaled_add_norm/cuda.cu.inc"

struct Forward : shapes::ScaledAddNormForward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    sdk::plan_rows(call, x, {x, a, s, y, n}, {.values = 2}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
      call.launch(MLG_INSTANCE(scaled_add_norm_fwd, T, N), rows, x, a, s, y, n, rows.rows);
    });
  }
};

struct Backward : shapes::ScaledAddNormBackward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.flags({accumulate_dx, accumulate_da});
    sdk::plan_rows(call, y, {y, a, s, dy, dn, dx, da}, {.values = 5, .most_blocks = sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     const sdk::ColumnSums sums(call, ds, rows.blocks);
                     call.launch(MLG_INSTANCE(scaled_add_norm_bwd, T, N), rows, y, a, s, dy, dn, dx, da,
                                 sums.partial(), rows.rows, rows.rows_per_group);
                     sums.add(call, MLG_INSTANCE(add_column_sums));
                   });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
