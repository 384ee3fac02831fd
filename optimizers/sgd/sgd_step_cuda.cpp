// Launches of sgd_step.cu.
#include <mulligan/cuda/fused_update_plan.hpp>

#include "optimizers/sgd/sgd_step.h"

namespace mulligan::optimizers {
namespace {

#include "sgd_step.cu.inc"

using sdk::CudaCall;

struct Update : SgdUpdate {
  static void plan(CudaCall& call) {
    call.numbers({lr_multiplier, weight_decay});
    call.flags({decoupled, nesterov});
    call.constant("scaled", call.has(gradient_scale));
    sdk::fused_update_constants(call, fused);
    sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_copy(call, fused, [&]<typename Copy>() {
        sdk::dispatch_elements<float, Master, Copy>(
            call, {gradient, master, momentum_buffer, average, copy},
            [&]<int N>(const sdk::ElementPlan& elements) {
              call.launch(MLG_INSTANCE(sgd_update, Master, Copy, N), elements,
                          gradient, master, momentum_buffer,
                          scalars, gradient_scale, average,
                          copy, elements.count);
            });
      });
    });
  }
};

}  // namespace

constinit const mlg_kernel sgd_update_cuda = sdk::cuda_kernel<Update>(kSource);

}  // namespace mulligan::optimizers
