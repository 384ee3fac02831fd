// Launches of momentum.cu.
#include <mulligan/cuda/fused_update.cuh>
#include <mulligan/cuda/row_plan.hpp>

#include "optimizers/common/momentum.h"

namespace mulligan::optimizers {
namespace {

#include "momentum.cu.inc"

using sdk::CudaCall;

template <typename Buffer, typename Direction, int N>
void plan_momentum(CudaCall& call) {
  using enum MatrixMomentum::Argument;
  const sdk::RowPlan rows(call, sdk::row_count(call, gradient), sdk::row_width(call, gradient), N,
                          {.values = 2});
  const std::int64_t matrix_rows =
      call.dim(gradient, static_cast<const sdk::Launch&>(call).tensor(gradient).rank - 2);
  const sdk::CudaArgument row_sums = call.floats(rows.rows);
  call.launch(MLG_INSTANCE(muon_momentum_rows, Buffer, Direction, N), rows, gradient, momentum_buffer,
              scalars, direction, gradient_scale, row_sums, rows.rows);
  const bool scales = call.flag(MatrixMomentum::row_normalize) || call.flag(MatrixMomentum::normalize);
  call.launch(MLG_INSTANCE(muon_row_factors),
              {!scales || matrix_rows == 0 ? 0 : rows.rows / matrix_rows, 1, 1}, {256, 1, 1}, row_sums,
              static_cast<int>(matrix_rows));
  call.launch(MLG_INSTANCE(muon_scale_rows, Direction, N), {scales ? rows.blocks : 0, 1, 1}, rows.block(),
              direction, row_sums, rows.rows);
}

struct Momentum : MatrixMomentum {
  static void plan(CudaCall& call) {
    call.flags({nesterov, row_normalize, mean, normalize});
    call.constant("scaled", call.has(gradient_scale));
    sdk::dispatch_cuda_master(call.dtype(momentum_buffer), [&]<typename Buffer>() {
      sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
        constexpr int kMost = std::max({kPack<float>, kPack<Buffer>, kPack<Direction>});
        if (call.allows_packs(sdk::row_width(call, gradient), kMost,
                              {gradient, momentum_buffer, direction})) {
          plan_momentum<Buffer, Direction, kMost>(call);
        } else {
          plan_momentum<Buffer, Direction, 1>(call);
        }
      });
    });
  }
};

}  // namespace

constinit const mlg_kernel matrix_momentum_cuda = sdk::cuda_kernel<Momentum>(kSource);

}  // namespace mulligan::optimizers
