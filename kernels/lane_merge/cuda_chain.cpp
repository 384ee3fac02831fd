#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/lane_merge/signature_chain.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "lane_merge/cuda_chain.cu.inc"

struct ChainForward : shapes::LaneChainForward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.constant("mixes", true);
    call.constant("merges", call.has(weight) || call.has(gate));
    sdk::plan_rows(
        call, lane0,
        {lane0, lane1, a, m, attn_scale, mlp_scale, skip, weight, gate, x0, mix, merged, out1, n0, n1},
        {.values = 8}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
          call.launch(MLG_INSTANCE(lane_chain_fwd, T, N), rows, lane0, lane1, a, m, attn_scale, mlp_scale,
                      rho, post, skip, weight, gate, x0, mix, merged, out1, n0, n1, rows.rows);
        });
  }
};

struct MeanForward : shapes::LaneMeanNormForward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.constant("mixes", false);
    call.constant("merges", false);
    sdk::plan_rows(call, lane0, {lane0, lane1, a, m, attn_scale, mlp_scale, n}, {.values = 8},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     call.launch(MLG_INSTANCE(lane_chain_fwd, T, N), rows, lane0, lane1, a, m, attn_scale,
                                 mlp_scale, rho, post, call.null(), call.null(), call.null(), call.null(),
                                 call.null(), call.null(), call.null(), n, call.null(), rows.rows);
                   });
  }
};

// A thread keeps sums of six columns' gradients next to the row as it is stored: two warps take a row of the
// record's width.
sdk::RowPlan backward_rows(CudaCall& call, std::int64_t rows, std::int64_t width, int pack, bool wide) {
  return sdk::RowPlan(call, rows, width, pack, {.values = wide ? 26 : 16, .most_blocks = sdk::kPieces});
}

struct ChainBackward : shapes::LaneChainBackward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.constant("mixes", true);
    call.constant("merges", call.has(weight) || call.has(gate));
    call.flags({accumulate_dlane0, accumulate_dlane1, accumulate_da, accumulate_dm, accumulate_dskip,
                accumulate_dx0});
    const std::int64_t width = call.dim(lane0, 1);
    sdk::dispatch_rows(
        call, lane0, width, {lane0,   lane1, a,   m,   attn_scale, mlp_scale, skip, weight, gate,  x0, mix,
                             dmerged, dout1, dn0, dn1, dlane0,     dlane1,    da,   dm,     dskip, dx0},
        [&]<typename T, int N>() {
          const sdk::RowPlan rows = backward_rows(call, call.dim(lane0, 0), width, N, sizeof(T) == 4);
          const sdk::ColumnSums sums[] = {{call, dattn_scale, rows.blocks}, {call, dmlp_scale, rows.blocks},
                                          {call, drho, rows.groups},        {call, dpost, rows.groups},
                                          {call, dmix, rows.blocks},        {call, dweight, rows.blocks},
                                          {call, dgate, rows.blocks}};
          call.launch(MLG_INSTANCE(lane_chain_bwd, T, N), rows, lane0, lane1, a, m, attn_scale, mlp_scale,
                      rho, post, skip, weight, gate, x0, mix, dmerged, dout1, dn0, dn1, dlane0, dlane1, da,
                      dm, dskip, dx0, sums[0].partial(), sums[1].partial(), sums[2].partial(),
                      sums[3].partial(), sums[4].partial(), sums[5].partial(), sums[6].partial(), rows.rows,
                      rows.rows_per_group);
          sdk::ColumnSums::add(call, MLG_INSTANCE(add_seven_column_sums), sums);
        });
  }
};

struct MeanBackward : shapes::LaneMeanNormBackward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.constant("mixes", false);
    call.constant("merges", false);
    call.flags({accumulate_dlane0, accumulate_dlane1, accumulate_da, accumulate_dm});
    call.constant("accumulate_dskip", false);
    call.constant("accumulate_dx0", false);
    const std::int64_t width = call.dim(lane0, 1);
    sdk::dispatch_rows(
        call, lane0, width, {lane0, lane1, a, m, attn_scale, mlp_scale, dn, dlane0, dlane1, da, dm},
        [&]<typename T, int N>() {
          const sdk::RowPlan rows = backward_rows(call, call.dim(lane0, 0), width, N, sizeof(T) == 4);
          const sdk::ColumnSums sums[] = {{call, dattn_scale, rows.blocks},
                                          {call, dmlp_scale, rows.blocks},
                                          {call, drho, rows.groups},
                                          {call, dpost, rows.groups}};
          call.launch(MLG_INSTANCE(lane_chain_bwd, T, N), rows, lane0, lane1, a, m, attn_scale, mlp_scale,
                      rho, post, call.null(), call.null(), call.null(), call.null(), call.null(), call.null(),
                      call.null(), dn, call.null(), dlane0, dlane1, da, dm, call.null(), call.null(),
                      sums[0].partial(), sums[1].partial(), sums[2].partial(), sums[3].partial(), call.null(),
                      call.null(), call.null(), rows.rows, rows.rows_per_group);
          sdk::ColumnSums::add(call, MLG_INSTANCE(add_four_column_sums), sums);
        });
  }
};

const Register registered[] = {
    sdk::cuda_kernel<ChainForward>(kSource), sdk::cuda_kernel<MeanForward>(kSource),
    sdk::cuda_kernel<ChainBackward>(kSource), sdk::cuda_kernel<MeanBackward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
