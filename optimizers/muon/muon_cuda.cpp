// Launches of muon_kernels.cu.
#include <mulligan/cuda/fused_update_plan.hpp>

#include "optimizers/muon/muon_kernels.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/muon/muon_kernels.cu"

constexpr char kSource[] =
#include "muon_kernels.cu.inc"
    ;

using sdk::CudaCall;

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

mlg_kernel muon_update_cuda() {
  return sdk::cuda_kernel<Update>();
}

}  // namespace mulligan::optimizers
