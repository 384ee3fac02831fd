// Host side of fused_update.cuh.
#pragma once

#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/fused_update.cuh>
#include <mulligan/fused_update.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Declares the constants of fused_update.cuh and calls body.template operator()<Master, Copy, N>(plan) as
// dispatch_elements() does, for a kernel whose further dtypes are Others. Copy: the dtype of the copy, or any where there is
// none.
template <typename... Others, typename Body>
void dispatch_update(CudaCall& call, const FusedUpdate& update,
                     std::initializer_list<std::uint32_t> arguments, Body&& body) {
  if (update.gradient_scale != FusedUpdate::no_scale)
    call.constant("scaled", call.has(update.gradient_scale));
  call.constant("averaged", call.has(update.average));
  call.constant("copied", call.has(update.copy));
  call.constant("average_keep", call.attribute(update.average_decay));
  call.constant("average_take", 1.0 - call.attribute(update.average_decay));
  dispatch_cuda_master(call.dtype(update.master), [&]<typename Master>() {
    dispatch_cuda(call.has(update.copy) ? call.dtype(update.copy) : MLG_F32, [&]<typename Copy>() {
      dispatch_elements<Others..., Master, Copy>(call, arguments, [&]<int N>(const ElementPlan& plan) {
        body.template operator()<Master, Copy, N>(plan);
      });
    });
  });
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
