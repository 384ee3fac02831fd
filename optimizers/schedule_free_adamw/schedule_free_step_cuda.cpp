// Launches of schedule_free_step.cu.
#include <mulligan/cuda/fused_update_plan.hpp>

#include "optimizers/schedule_free_adamw/schedule_free_step.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/schedule_free_adamw/schedule_free_step.cu"

constexpr char kSource[] =
#include "schedule_free_step.cu.inc"
    ;

using sdk::CudaCall;

struct Share : ScheduleFreeShare {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.launch(MLG_INSTANCE(schedule_free_share), {1, 1, 1}, {32, 1, 1}, call.tensor(scalars),
                call.tensor(weight_sum), call.tensor(share));
  }
};

struct Update : ScheduleFreeUpdate {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({lr_multiplier, weight_decay, beta1, beta2, eps});
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    call.constant("scaled", call.has(gradient_scale));
    sdk::fused_update_constants(call, fused);
    sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_copy(call, fused, [&]<typename Copy>() {
        sdk::dispatch_elements<float, Master, Copy>(
            call, {gradient, master, offset, exp_avg_sq, average, copy},
            [&]<int N>(const sdk::ElementPlan& elements) {
              call.launch(MLG_INSTANCE(schedule_free_update, Master, Copy, N), elements.grid(),
                          elements.block(), call.tensor(gradient), call.tensor(master), call.tensor(offset),
                          call.tensor(exp_avg_sq), call.tensor(share), call.tensor(scalars),
                          call.tensor(gradient_scale), call.tensor(average), call.tensor(copy),
                          elements.count);
            });
      });
    });
  }
};

struct Average : ScheduleFreeAverage {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({ratio});
    sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_elements<float, Master>(
          call, {master, offset, evaluation}, [&]<int N>(const sdk::ElementPlan& elements) {
            call.launch(MLG_INSTANCE(schedule_free_average, Master, N), elements.grid(), elements.block(),
                        call.tensor(master), call.tensor(offset), call.tensor(evaluation), elements.count);
          });
    });
  }
};

}  // namespace

mlg_kernel schedule_free_share_cuda() {
  return sdk::cuda_kernel<Share>();
}
mlg_kernel schedule_free_update_cuda() {
  return sdk::cuda_kernel<Update>();
}
mlg_kernel schedule_free_average_cuda() {
  return sdk::cuda_kernel<Average>();
}

}  // namespace mulligan::optimizers
