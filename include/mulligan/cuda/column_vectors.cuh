// Vectors with one value per column, for kernels on rows: scales that may be absent, and the merge of a skip connection into a
// sum. The merge is k sum + (1-k) w skip with k = sigmoid(gate), or sum + w skip without a gate.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

// s from `column` on, or 1 if it is null.
template <int N>
__device__ inline void load_scales(global<const float> s, int column, float (&out)[N]) {
  MLG_UNROLL
  for (int n = 0; n < N; ++n) out[n] = 1;
  if (s) load<N>(s, column, out);
}

// k and 1 - k from `column` on; 1 and 1 if gate is null.
template <int N>
__device__ inline void load_gate(global<const float> gate, int column, float (&k)[N], float (&rest)[N]) {
  MLG_UNROLL
  for (int n = 0; n < N; ++n) k[n] = rest[n] = 1;
  if (!gate) return;
  float logit[N];
  load<N>(gate, column, logit);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    k[n] = __fdividef(1.0f, 1.0f + __expf(-logit[n]));
    rest[n] = __fdividef(1.0f, 1.0f + __expf(logit[n]));
  }
}

// w, k and 1 - k of N columns. Without weight w = 0; without gate k = 1 and 1 - k = 1.
template <int N>
struct MergeColumns {
  float w[N], of_sum[N], rest[N];

  __device__ MergeColumns(global<const float> weight, global<const float> gate, int column) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) w[n] = 0;
    if (weight) load<N>(weight, column, w);
    load_gate<N>(gate, column, of_sum, rest);
  }
  // k sum + (1-k) w skip
  __device__ float merge(int n, float sum, float skip) const {
    return of_sum[n] * sum + rest[n] * w[n] * skip;
  }
};

}  // namespace
