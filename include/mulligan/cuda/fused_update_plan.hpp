// Host side of fused_update.cuh.
#pragma once

#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/fused_update.cuh>
#include <mulligan/fused_update.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Declares the constants of fused_update.cuh but for `scaled`, which not every kernel reads.
inline void fused_update_constants(CudaCall& call, const FusedUpdate& update) {
  call.constant("averaged", call.has(update.average));
  call.constant("copied", call.has(update.copy));
  call.constant("average_keep", call.attribute(update.average_decay));
  call.constant("average_take", 1.0 - call.attribute(update.average_decay));
}

// body.template operator()<Copy>(): the dtype of the copy, or any where there is none.
template <typename Body>
void dispatch_copy(const CudaCall& call, const FusedUpdate& update, Body&& body) {
  dispatch_cuda(call.has(update.copy) ? call.dtype(update.copy) : MLG_F32, std::forward<Body>(body));
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
