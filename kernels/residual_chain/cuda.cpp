#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/residual_chain/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "residual_chain/cuda.cu.inc"

struct Forward : shapes::ResidualChainForward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.constant("merges", call.has(weight) || call.has(gate));
    call.constant("skips", call.has(skip));
    sdk::plan_rows(call, x, {x, a, s, skip, weight, gate, x0, mix, sum, merged, y, n}, {.values = 6},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     call.launch(MLG_INSTANCE(residual_chain_fwd, T, N), rows, x, a, s, skip, weight, gate,
                                 x0, mix, sum, merged, y, n, rows.rows);
                   });
  }
};

struct Backward : shapes::ResidualChainBackward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.constant("merges", call.has(weight) || call.has(gate));
    call.constant("skips", call.has(skip));
    call.flags({accumulate_dx, accumulate_da, accumulate_dskip, accumulate_dx0});
    const std::int64_t width = call.dim(x, 1);
    sdk::dispatch_rows(
        call, x, width, {x, a, s, skip, weight, gate, x0, mix, dsum, dmerged, dy, dn, dx, da, dskip, dx0},
        [&]<typename T, int N>() {
          // Sums, and rows as they are stored. With a merge two warps take a row of the record's width; as
          // many blocks as six on each multiprocessor of a large GPU then run at once.
          const bool merges = call.has(weight) || call.has(gate), wide = sizeof(T) == 4;
          const sdk::RowPlan rows(call, call.dim(x, 0), width, N,
                                  {.values = merges ? (wide ? 26 : 13) : (wide ? 15 : 9),
                                   .most_blocks = merges ? sdk::kPieces * 3 / 4 : sdk::kPieces});
          const sdk::ColumnSums sums[] = {{call, ds, rows.blocks},
                                          {call, dmix, rows.blocks},
                                          {call, dweight, rows.blocks},
                                          {call, dgate, rows.blocks}};
          call.launch(MLG_INSTANCE(residual_chain_bwd, T, N), rows, x, a, s, skip, weight, gate, x0, mix,
                      dsum, dmerged, dy, dn, dx, da, dskip, dx0, sums[0].partial(), sums[1].partial(),
                      sums[2].partial(), sums[3].partial(), rows.rows, rows.rows_per_group);
          sdk::ColumnSums::add(call, MLG_INSTANCE(add_four_column_sums), sums);
        });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
