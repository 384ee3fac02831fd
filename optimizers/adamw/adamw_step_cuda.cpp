// Launches of adamw_step.cu.
#include <mulligan/cuda/fused_update_plan.hpp>
#include <mulligan/cuda/philox.cuh>

#include "optimizers/adamw/adamw_step.h"

namespace mulligan::optimizers {
namespace {

#include "adamw_step.cu.inc"

using sdk::CudaCall;

void give_constants(CudaCall& call) {
  using enum AdamwUpdate::Attribute;
  call.numbers({lr_multiplier, weight_decay, beta2, eps});
  call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
}

struct Update : AdamwUpdate {
  static void plan(CudaCall& call) {
    give_constants(call);
    sdk::dispatch_cuda_master(call.dtype(exp_avg_sq), [&]<typename State>() {
      sdk::dispatch_update<float, State>(
          call, fused, {gradient, master, exp_avg, exp_avg_sq, average, copy},
          [&]<typename Master, typename Copy, int N>(const sdk::ElementPlan& elements) {
            call.launch(MLG_INSTANCE(adamw_update, Master, State, Copy, N), elements, gradient, master,
                        exp_avg, exp_avg_sq, scalars, gradient_scale, average, copy, elements.count);
          });
    });
  }
};

struct StochasticUpdate : AdamwStochasticUpdate {
  static void plan(CudaCall& call) {
    give_constants(call);
    sdk::dispatch_update<float, bf16>(
        call, fused, {gradient, master, exp_avg, exp_avg_sq, average, copy},
        [&]<typename Master, typename Copy, int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(adamw_stochastic_update, Master, Copy, N), elements, gradient, master,
                      exp_avg, exp_avg_sq, scalars, gradient_scale, average, copy,
                      static_cast<long long>(call.attribute(stream)), static_cast<long long>(purpose),
                      elements.count);
        });
  }
};

}  // namespace

constinit const mlg_kernel adamw_update_cuda = sdk::cuda_kernel<Update>(kSource);
constinit const mlg_kernel adamw_stochastic_update_cuda = sdk::cuda_kernel<StochasticUpdate>(kSource);

}  // namespace mulligan::optimizers
