// softcap_ce on logits [T, V], targets [T], softcap c: formula and shapes in cross_entropy.cuh.
#include <mulligan/cuda/cross_entropy.cuh>

MLG_KERNEL(softcap_ce_fwd, MLG_CROSS_ENTROPY_CONSTANTS)
template <typename T, int N>
__global__ void softcap_ce_fwd(global<const T> logits, global<const int> targets, global<float> token_loss,
                               global<float> lse) {
  cross_entropy_row<T, N>(logits, targets, token_loss, lse, false);
}

MLG_KERNEL(softcap_ce_bwd, MLG_CROSS_ENTROPY_CONSTANTS)
template <typename T, int N>
__global__ void softcap_ce_bwd(global<const T> logits, global<const int> targets, global<const float> lse,
                               global<const float> upstream, global<T> dlogits) {
  cross_entropy_gradient_row<T, N>(logits, targets, lse, upstream, dlogits);
}

MLG_KERNEL(softcap_ce_fwd_bwd, MLG_CROSS_ENTROPY_CONSTANTS)
template <typename T, int N, int K>
__global__ void __launch_bounds__(512)
    softcap_ce_fwd_bwd(global<const T> logits, global<const int> targets, global<const float> upstream,
                       global<float> token_loss, global<T> dlogits) {
  cross_entropy_both_row<T, N, K>(logits, targets, upstream, token_loss, dlogits);
}
