// cross_entropy on logits [T, V], targets [T]: formula and shapes in cross_entropy.cuh, without a softcap.
// lse is computed for negative targets, too.
#include <mulligan/cuda/cross_entropy.cuh>

MLG_KERNEL(cross_entropy_fwd, MLG_CROSS_ENTROPY_CONSTANTS)
template <typename T, int N>
__global__ void cross_entropy_fwd(global<const T> logits, global<const int> targets, global<float> token_loss,
                                  global<float> lse) {
  cross_entropy_row<T, N>(logits, targets, token_loss, lse, true);
}

MLG_KERNEL(cross_entropy_bwd, MLG_CROSS_ENTROPY_CONSTANTS)
template <typename T, int N>
__global__ void cross_entropy_bwd(global<const T> logits, global<const int> targets, global<const float> lse,
                                  global<const float> upstream, global<T> dlogits) {
  cross_entropy_gradient_row<T, N>(logits, targets, lse, upstream, dlogits);
}
