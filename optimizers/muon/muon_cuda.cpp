// Launches of muon_kernels.cu.
#include <mulligan/cuda/fused_update_plan.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "optimizers/muon/muon_kernels.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/muon/muon_kernels.cu"

constexpr char kSource[] =
#include "muon_kernels.cu.inc"
    ;

using sdk::CudaCall;

// `scale`: the factor of the gradients, or null.
template <typename Buffer, typename Direction, int N>
void plan_momentum_typed(CudaCall& call, const sdk::CudaArgument& scale) {
  using enum MuonMomentum::Argument;
  const sdk::RowPlan rows(call, sdk::row_count(call, gradient), sdk::row_width(call, gradient), N,
                          {.values = 2});
  const std::int64_t matrix_rows =
      call.dim(gradient, static_cast<const sdk::Launch&>(call).tensor(gradient).rank - 2);
  const sdk::CudaArgument row_sums = call.floats(rows.rows);
  call.launch(MLG_INSTANCE(muon_momentum_rows, Buffer, Direction, N), rows.grid(), rows.block(),
              call.tensor(gradient), call.tensor(momentum_buffer), call.tensor(scalars),
              call.tensor(direction), scale, row_sums, rows.rows);
  call.launch(MLG_INSTANCE(muon_row_factors), {matrix_rows == 0 ? 0 : rows.rows / matrix_rows, 1, 1},
              {256, 1, 1}, row_sums, static_cast<int>(matrix_rows));
  call.launch(MLG_INSTANCE(muon_scale_rows, Direction, N), rows.grid(), rows.block(), call.tensor(direction),
              row_sums, rows.rows);
}

void plan_momentum(CudaCall& call, bool scaled, const sdk::CudaArgument& scale) {
  using enum MuonMomentum::Argument;
  call.flags({MuonMomentum::nesterov, MuonMomentum::row_normalize});
  call.constant("scaled", scaled);
  sdk::dispatch_cuda_master(call.dtype(momentum_buffer), [&]<typename Buffer>() {
    sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
      constexpr int kMost = std::max({kPack<float>, kPack<Buffer>, kPack<Direction>});
      if (call.allows_packs(sdk::row_width(call, gradient), kMost, {gradient, momentum_buffer, direction})) {
        plan_momentum_typed<Buffer, Direction, kMost>(call, scale);
      } else {
        plan_momentum_typed<Buffer, Direction, 1>(call, scale);
      }
    });
  });
}

struct Momentum : MuonMomentum {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check_arguments(call);
    plan_momentum(call, false, call.null());
  }
};

struct ScaledMomentum : MuonScaledMomentum {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check_arguments(call);
    plan_momentum(call, true, call.tensor(gradient_scale));
  }
};

struct Apply : MuonApply {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({lr_multiplier, weight_decay, scale});
    sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
      sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
        sdk::dispatch_elements<Direction, Master>(
            call, {direction, master}, [&]<int N>(const sdk::ElementPlan& elements) {
              call.launch(MLG_INSTANCE(muon_apply, Direction, Master, N), elements.grid(), elements.block(),
                          call.tensor(direction), call.tensor(master), call.tensor(scalars), elements.count);
            });
      });
    });
  }
};

struct Update : MuonUpdate {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({lr_multiplier, weight_decay, scale});
    sdk::fused_update_constants(call, fused);
    sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
      sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
        sdk::dispatch_copy(call, fused, [&]<typename Copy>() { plan_typed<Direction, Master, Copy>(call); });
      });
    });
  }

 private:
  template <typename Direction, typename Master, typename Copy>
  static void plan_typed(CudaCall& call) {
    sdk::dispatch_elements<Direction, Master, Copy>(
        call, {direction, master, average, copy}, [&]<int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(muon_update, Direction, Master, Copy, N), elements.grid(),
                      elements.block(), call.tensor(direction), call.tensor(master), call.tensor(scalars),
                      call.tensor(average), call.tensor(copy), elements.count);
        });
  }
};

}  // namespace

mlg_kernel muon_scaled_momentum_cuda() {
  return sdk::cuda_kernel<ScaledMomentum>();
}
mlg_kernel muon_update_cuda() {
  return sdk::cuda_kernel<Update>();
}
mlg_kernel muon_momentum_cuda() {
  return sdk::cuda_kernel<Momentum>();
}
mlg_kernel muon_apply_cuda() {
  return sdk::cuda_kernel<Apply>();
}

}  // namespace mulligan::optimizers
