// Launches of schedule_free_step.cu.
#include <mulligan/cuda/fused_update_plan.hpp>

#include "optimizers/schedule_free_adamw/schedule_free_step.h"

namespace mulligan::optimizers {
namespace {

#include "schedule_free_step.cu.inc"

using sdk::CudaCall;

struct Share : ScheduleFreeShare {
  static void plan(CudaCall& call) {
    call.launch(MLG_INSTANCE(schedule_free_share), {1, 1, 1}, {32, 1, 1}, scalars, weight_sum, share);
  }
};

struct Update : ScheduleFreeUpdate {
  static void plan(CudaCall& call) {
    call.numbers({lr_multiplier, weight_decay, beta1, beta2, eps});
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    sdk::dispatch_update<float>(call, fused, {gradient, master, offset, exp_avg_sq, average, copy},
                                [&]<typename Master, typename Copy, int N>(const sdk::ElementPlan& elements) {
                                  call.launch(MLG_INSTANCE(schedule_free_update, Master, Copy, N), elements,
                                              gradient, master, offset, exp_avg_sq, share, scalars,
                                              gradient_scale, average, copy, elements.count);
                                });
  }
};

struct Average : ScheduleFreeAverage {
  static void plan(CudaCall& call) {
    call.numbers({ratio});
    sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_elements<float, Master>(
          call, {master, offset, evaluation}, [&]<int N>(const sdk::ElementPlan& elements) {
            call.launch(MLG_INSTANCE(schedule_free_average, Master, N), elements, master, offset, evaluation,
                        elements.count);
          });
    });
  }
};

}  // namespace

constinit const mlg_kernel schedule_free_share_cuda = sdk::cuda_kernel<Share>(kSource);
constinit const mlg_kernel schedule_free_update_cuda = sdk::cuda_kernel<Update>(kSource);
constinit const mlg_kernel schedule_free_average_cuda = sdk::cuda_kernel<Average>(kSource);

}  // namespace mulligan::optimizers
