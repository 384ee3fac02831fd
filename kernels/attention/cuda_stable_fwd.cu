// attention_stable_fwd: attention_forward.cuh with a softmax in which the largest score r of a block of 32 keys
// that occurs min_repeats times (counting scores from r - tolerance on) is replaced by
//   r + shift,  shift = (beta - 1) r where r > 0, -r otherwise, halved until it is at most cap
// (arXiv 2510.04212; why a shift is halved: cpu_stable_fwd.cpp). min_repeats = 0: never.
//
// Weights are rounded to T before they are multiplied with the values, as on tensor cores, though the sums are f32.
// round_normalizer: the sums are divided by the sum of the rounded weights; round_sums: they are rounded to T before.
// lse is of the weights before rounding. A query's tiles begin with its segment.
#include <mulligan/cuda/attention_forward.cuh>

MLG_CONST_FLOAT(beta)
MLG_CONST_FLOAT(tolerance)
MLG_CONST_FLOAT(cap)
MLG_CONST_INT(min_repeats)
MLG_CONST_INT(round_normalizer)
MLG_CONST_INT(round_sums)

// `value` as it is in T.
template <typename T>
__device__ inline float as_stored(float value) {
  return to_float(Narrow<T>::from(value));
}

// What takes the place of the largest score r of the keys that the warp's lanes hold a score of.
__device__ inline float shifted_maximum(float r, float score) {
  if (min_repeats == 0 || r == kNoScore) return r;
  if (warp_sum(score >= r - tolerance ? 1 : 0) < min_repeats) return r;
  float shift = r > 0 ? (beta - 1) * r : -r;
  for (int n = 0; n < 140 && shift > cap; ++n) shift *= 0.5f;  // 140: an infinity stays what it is
  return r + shift;
}

template <typename T>
struct RoundedSoftmax {
  float maximum = kNoScore, sum = 0, rounded_sum = 0;

  __device__ float take(bool seen, float score, float& rescale) {
    const float highest = fmaxf(maximum, shifted_maximum(warp_max(score), score));
    rescale = expf(maximum - highest);
    const float weight = seen ? expf(score - highest) : 0.0f, stored = as_stored<T>(weight);
    sum = sum * rescale + warp_sum(weight);
    rounded_sum = rounded_sum * rescale + warp_sum(stored);
    maximum = highest;
    return stored;
  }
  __device__ float finish(Channels& sums) const {
    if (round_sums) {
      MLG_UNROLL
      for (int c = 0; c < channels; ++c) sums.v[c] = as_stored<T>(sums.v[c]);
    }
    return round_normalizer ? rounded_sum : sum;
  }
};

MLG_KERNEL(attention_stable_fwd, softmax_scale, beta, tolerance, cap, min_repeats, round_normalizer,
           round_sums, MLG_ATTENTION_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(kForwardWarps * 32)
    attention_stable_fwd(global<const T> q, global<const T> k, global<const T> v,
                         global<const int> cu_seqlens, global<T> o, global<float> lse, int tokens,
                         int segments) {
  attend<RoundedSoftmax<T>, N>(q, k, v, cu_seqlens, o, lse, tokens, segments, true);
}
