// What the update kernels of optimisers do in the same pass as their formula: they scale the gradient, and
// make an average and a copy of the new master. The host side is fused_update_plan.hpp.
#pragma once

#include <mulligan/cuda/elements.cuh>

namespace {

MLG_CONST_INT(scaled)
MLG_CONST_INT(averaged)
MLG_CONST_INT(copied)
MLG_CONST_FLOAT(average_keep)
MLG_CONST_FLOAT(average_take)
#define MLG_UPDATE_CONSTANTS averaged, copied, average_keep, average_take

__device__ inline float scale_of_gradients(global<const float> gradient_scale) {
  return scaled ? float(gradient_scale[0]) : 1.0f;
}

// p: the running thread's new masters, before they were rounded to their dtype. average and copy may be null.
template <typename Master, int N, typename Copy>
__device__ inline void finish_update(const float (&p)[N], global<float> average, global<Copy> copy,
                                     long long i) {
  if (!averaged && !copied) return;
  float stored[N];
  MLG_UNROLL
  for (int n = 0; n < N; ++n) stored[n] = to_float(Narrow<Master>::from(p[n]));
  if (averaged) {
    float mean[N];
    load<N>(average, i, mean);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) mean[n] = average_keep * mean[n] + average_take * stored[n];
    store<N>(average, i, mean);
  }
  if (copied) store<N>(copy, i, stored);
}

}  // namespace
