// Launches of adamw_step.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/adamw/adamw_step.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/adamw/adamw_step.cu"

constexpr char kSource[] =
#include "adamw_step.cu.inc"
    ;

using sdk::CudaCall;
using sdk::device_type;

struct Kernel : AdamwStep {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("lr_multiplier", call.attribute(lr_multiplier));
    call.constant("weight_decay", call.attribute(weight_decay));
    call.constant("beta2", call.attribute(beta2));
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    call.constant("eps", call.attribute(eps));
    sdk::dispatch_cuda(call.dtype(master), [&]<typename Master>() {
      sdk::dispatch_cuda(call.dtype(exp_avg), [&]<typename State>() { plan_typed<Master, State>(call); });
    });
  }

 private:
  template <typename Master, typename State>
  static void plan_typed(CudaCall& call) {
    sdk::dispatch_elements<float, Master, State>(
        call, {gradient, master, exp_avg, exp_avg_sq}, [&]<int N>(const sdk::ElementPlan& elements) {
          call.launch<&adamw_step<Master, State, N>>(
              "adamw_step", {device_type<Master>, device_type<State>, std::to_string(N)}, elements.grid(),
              elements.block(), call.tensor(gradient), call.tensor(master), call.tensor(exp_avg),
              call.tensor(exp_avg_sq), call.tensor(scalars), elements.count);
        });
  }
};

}  // namespace

mlg_kernel adamw_step_cuda() {
  return sdk::cuda_kernel<Kernel>();
}

}  // namespace mulligan::optimizers
