// Launches of schedule_free_step.cu.
#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "optimizers/schedule_free_adamw/schedule_free_step.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/schedule_free_adamw/schedule_free_step.cu"

constexpr char kSource[] =
#include "schedule_free_step.cu.inc"
    ;

using sdk::CudaCall;

// The file's constants, where the kernel does not use them.
void unused_constants(CudaCall& call, std::initializer_list<const char*> names) {
  for (const char* name : names) call.constant(name, 0.0);
}

struct Share : ScheduleFreeShare {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    unused_constants(call,
                     {"lr_multiplier", "weight_decay", "beta1", "beta2", "one_minus_beta2", "eps", "ratio"});
    call.launch<&schedule_free_share>("schedule_free_share", {}, {1, 1, 1}, {32, 1, 1}, call.tensor(scalars),
                                      call.tensor(weight_sum), call.tensor(share));
  }
};

struct Step : ScheduleFreeStep {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("lr_multiplier", call.attribute(lr_multiplier));
    call.constant("weight_decay", call.attribute(weight_decay));
    call.constant("beta1", call.attribute(beta1));
    call.constant("beta2", call.attribute(beta2));
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    call.constant("eps", call.attribute(eps));
    unused_constants(call, {"ratio"});
    sdk::dispatch_cuda(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_elements<float, Master>(
          call, {gradient, master, offset, exp_avg_sq}, [&]<int N>(const sdk::ElementPlan& elements) {
            call.launch<&schedule_free_step<Master, N>>(
                "schedule_free_step", sdk::instance<Master, N>(), elements.grid(), elements.block(),
                call.tensor(gradient), call.tensor(master), call.tensor(offset), call.tensor(exp_avg_sq),
                call.tensor(share), call.tensor(scalars), elements.count);
          });
    });
  }
};

struct Average : ScheduleFreeAverage {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("ratio", call.attribute(ratio));
    unused_constants(call, {"lr_multiplier", "weight_decay", "beta1", "beta2", "one_minus_beta2", "eps"});
    sdk::dispatch_cuda(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_elements<float, Master>(
          call, {master, offset, evaluation}, [&]<int N>(const sdk::ElementPlan& elements) {
            call.launch<&schedule_free_average<Master, N>>(
                "schedule_free_average", sdk::instance<Master, N>(), elements.grid(), elements.block(),
                call.tensor(master), call.tensor(offset), call.tensor(evaluation), elements.count);
          });
    });
  }
};

}  // namespace

mlg_kernel schedule_free_share_cuda() {
  return sdk::cuda_kernel<Share>();
}
mlg_kernel schedule_free_step_cuda() {
  return sdk::cuda_kernel<Step>();
}
mlg_kernel schedule_free_average_cuda() {
  return sdk::cuda_kernel<Average>();
}

}  // namespace mulligan::optimizers
