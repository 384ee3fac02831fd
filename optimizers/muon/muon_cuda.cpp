// Launches of muon_kernels.cu.
#include <mulligan/cuda/fused_update_plan.hpp>

#include "optimizers/muon/muon_kernels.h"

namespace mulligan::optimizers {
namespace {

#include "muon_kernels.cu.inc"

using sdk::CudaCall;

struct Update : MuonUpdate {
  static void plan(CudaCall& call) {
    call.numbers({lr_multiplier, weight_decay, scale});
    sdk::dispatch_cuda_master(call.dtype(direction), [&]<typename Direction>() {
      sdk::dispatch_update<Direction>(
          call, fused, {direction, master, average, copy},
          [&]<typename Master, typename Copy, int N>(const sdk::ElementPlan& elements) {
            call.launch(MLG_INSTANCE(muon_update, Direction, Master, Copy, N), elements, direction, master,
                        scalars, average, copy, elements.count);
          });
    });
  }
};

}  // namespace

constinit const mlg_kernel muon_update_cuda = sdk::cuda_kernel<Update>(kSource);

}  // namespace mulligan::optimizers
