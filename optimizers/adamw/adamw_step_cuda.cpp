// Launches of adamw_step.cu.
#include <mulligan/cuda/fused_update_plan.hpp>
#include <mulligan/cuda/philox.cuh>

#include "optimizers/adamw/adamw_step.h"

namespace mulligan::optimizers {
namespace {

#include "adamw_step.cu.inc"

using sdk::CudaCall;

struct Update : AdamwUpdate {
  static void plan(CudaCall& call) {
    call.numbers({lr_multiplier, weight_decay, beta2, eps});
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    call.constant("scaled", call.has(gradient_scale));
    sdk::fused_update_constants(call, fused);
    sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_cuda_master(call.dtype(exp_avg_sq), [&]<typename State>() {
        sdk::dispatch_copy(call, fused, [&]<typename Copy>() { plan_typed<Master, State, Copy>(call); });
      });
    });
  }

 private:
  template <typename Master, typename State, typename Copy>
  static void plan_typed(CudaCall& call) {
    sdk::dispatch_elements<float, Master, State, Copy>(
        call, {gradient, master, exp_avg, exp_avg_sq, average, copy},
        [&]<int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(adamw_update, Master, State, Copy, N), elements,
                      gradient, master, exp_avg,
                      exp_avg_sq, scalars, gradient_scale,
                      average, copy, elements.count);
        });
  }
};

struct StochasticUpdate : AdamwStochasticUpdate {
  static void plan(CudaCall& call) {
    call.numbers({lr_multiplier, weight_decay, beta2, eps});
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    call.constant("scaled", call.has(gradient_scale));
    sdk::fused_update_constants(call, fused);
    sdk::dispatch_cuda_master(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_copy(call, fused, [&]<typename Copy>() { plan_typed<Master, Copy>(call); });
    });
  }

 private:
  template <typename Master, typename Copy>
  static void plan_typed(CudaCall& call) {
    const auto number = static_cast<long long>(call.attribute(stream));
    sdk::dispatch_elements<float, Master, bf16, Copy>(
        call, {gradient, master, exp_avg, exp_avg_sq, average, copy},
        [&]<int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(adamw_stochastic_update, Master, Copy, N), elements, gradient, master, exp_avg,
                      exp_avg_sq, scalars, gradient_scale,
                      average, copy, number, static_cast<long long>(purpose),
                      elements.count);
        });
  }
};

}  // namespace

constinit const mlg_kernel adamw_update_cuda = sdk::cuda_kernel<Update>(kSource);
constinit const mlg_kernel adamw_stochastic_update_cuda = sdk::cuda_kernel<StochasticUpdate>(kSource);

}  // namespace mulligan::optimizers
