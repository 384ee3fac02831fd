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
    sdk::dispatch_update<float>(call, fused, {gradient, master, momentum_buffer, average, copy},
                                [&]<typename Master, typename Copy, int N>(const sdk::ElementPlan& elements) {
                                  call.launch(MLG_INSTANCE(sgd_update, Master, Copy, N), elements, gradient,
                                              master, momentum_buffer, scalars, gradient_scale, average, copy,
                                              elements.count);
                                });
  }
};

}  // namespace

constinit const mlg_kernel sgd_update_cuda = sdk::cuda_kernel<Update>(kSource);

}  // namespace mulligan::optimizers
