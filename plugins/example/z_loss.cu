// z_loss on logits [T, V], one block per row: formula in z_loss.h, the row's log-sum-exp
// in the SDK's cross_entropy.cuh.
#include <mulligan/cuda/cross_entropy.cuh>

MLG_KERNEL(z_loss_fwd, MLG_CROSS_ENTROPY_CONSTANTS)
template <typename T, int N>
__global__ void z_loss_fwd(global<const T> logits, global<const int> targets, global<float> token_loss,
                           global<float> lse, float weight) {
  cross_entropy_row<T, N>(logits, targets, token_loss, lse, false);
  const long long row = blockIdx.x;
  if (threadIdx.x == 0) token_loss[row] += weight * lse[row] * lse[row];
}

MLG_KERNEL(z_loss_bwd, MLG_CROSS_ENTROPY_CONSTANTS)
template <typename T, int N>
__global__ void z_loss_bwd(global<const T> logits, global<const int> targets, global<const float> lse,
                           global<const float> upstream, global<T> dlogits, float weight) {
  const long long row = blockIdx.x;
  const int target = targets[row];
  const float factor = target < 0             ? 0.0f
                       : target >= vocabulary ? bits_to_float(0x7FC00000u)
                                              : float(upstream[row]);
  const float scale = 1.0f + 2.0f * weight * lse[row];
  for (int j = int(threadIdx.x) * N; j < vocabulary; j += block_threads * N) {
    float d[N];
    load<N>(logits, row * vocabulary + j, d);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) {
      const float slope = __expf(d[n] - lse[row]) * scale - (j + n == target ? 1.0f : 0.0f);
      d[n] = factor == 0.0f ? 0.0f : factor * slope;
    }
    store<N>(dlogits, row * vocabulary + j, d);
  }
}
