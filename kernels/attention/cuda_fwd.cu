// attention_fwd and attention_bidirectional_fwd: attention_forward.cuh with the plain online softmax.
#include <mulligan/cuda/attention_forward.cuh>

MLG_CONST_INT(restart_tiles)
MLG_CONST_INT(bidirectional)

struct Softmax {
  float maximum = kNoScore, sum = 0;

  __device__ float take(bool seen, float score, float& rescale) {
    const float highest = fmaxf(maximum, warp_max(score));
    rescale = __expf(maximum - highest);
    const float weight = seen ? __expf(score - highest) : 0.0f;
    sum = sum * rescale + warp_sum(weight);
    maximum = highest;
    return weight;
  }
  __device__ float finish(Channels&) const { return sum; }
};

MLG_KERNEL(attention_fwd, softmax_scale, restart_tiles, bidirectional, MLG_ATTENTION_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(kForwardWarps * 32)
    attention_fwd(global<const T> q, global<const T> k, global<const T> v, global<const int> cu_seqlens,
                  global<T> o, global<float> lse, int tokens, int segments) {
  attend<Softmax, N>(q, k, v, cu_seqlens, o, lse, tokens, segments, restart_tiles, bidirectional);
}
