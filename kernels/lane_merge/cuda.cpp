#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/lane_merge/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "lane_merge/cuda.cu.inc"

struct Forward : shapes::LaneMergeForward {
  static void plan(CudaCall& call) {
    sdk::plan_rows(call, lane0, {lane0, lane1, a, m, attn_scale, mlp_scale, out0, out1},
                   {.values = 4, .most_groups = 16 * sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     call.launch(MLG_INSTANCE(lane_merge_fwd, T, N), rows, lane0, lane1, a, m, attn_scale,
                                 mlp_scale, rho, post, out0, out1, rows.rows, rows.rows_per_group);
                   });
  }
};

struct Backward : shapes::LaneMergeBackward {
  static void plan(CudaCall& call) {
    call.flags({accumulate_dlane0, accumulate_dlane1, accumulate_da, accumulate_dm});
    sdk::plan_rows(
        call, lane0, {lane0, lane1, a, m, attn_scale, mlp_scale, dout0, dout1, dlane0, dlane1, da, dm},
        {.values = 8, .most_blocks = sdk::kPieces}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
          const sdk::ColumnSums sums[] = {{call, dattn_scale, rows.blocks},
                                          {call, dmlp_scale, rows.blocks},
                                          {call, drho, rows.groups},
                                          {call, dpost, rows.groups}};
          call.launch(MLG_INSTANCE(lane_merge_bwd, T, N), rows, lane0, lane1, a, m, attn_scale, mlp_scale,
                      rho, post, dout0, dout1, dlane0, dlane1, da, dm, sums[0].partial(), sums[1].partial(),
                      sums[2].partial(), sums[3].partial(), rows.rows, rows.rows_per_group);
          sdk::ColumnSums::add(call, MLG_INSTANCE(add_four_column_sums), sums);
        });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
