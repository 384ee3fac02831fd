// attention_stable_fwd on q [T, H, h], k and v [T, K, h], cu_seqlens [N + 1]: attention_fwd, in which the
// largest score r of a block of 32 keys that occurs min_repeats times (counting scores from r - tolerance on)
// is replaced by
//   r + shift,  shift = (beta - 1) r where r > 0, -r otherwise, halved until it is at most cap
// (arXiv 2510.04212; why a shift is halved: the cpu backend's attention_stable_fwd.cpp). min_repeats = 0:
// never.
//
// Weights are rounded to T before they are multiplied with the values, as on tensor cores, though the sums are f32.
// round_normalizer: the sums are divided by the sum of the rounded weights; round_sums: they are rounded to T before.
// lse is of the weights before rounding. Determinism: a query's keys are read in order, in tiles that
// begin with its segment.
#include <mulligan/cuda/attention.cuh>

MLG_CONST_FLOAT(softmax_scale)
MLG_CONST_FLOAT(beta)
MLG_CONST_FLOAT(tolerance)
MLG_CONST_FLOAT(cap)
MLG_CONST_INT(min_repeats)
MLG_CONST_INT(round_normalizer)
MLG_CONST_INT(round_sums)

constexpr int kStableWarps = 8;
constexpr float kNoScore = -3.0e38f;

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

MLG_KERNEL(attention_stable_fwd, softmax_scale, beta, tolerance, cap, min_repeats, round_normalizer,
           round_sums, MLG_ATTENTION_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(kStableWarps * 32)
    attention_stable_fwd(global<const T> q, global<const T> k, global<const T> v,
                         global<const int> cu_seqlens, global<T> o, global<float> lse, int tokens,
                         int segments) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ Tile keys, values;
  __shared__ shared_array<float, kStableWarps * kOwned * kStride> queries;
  __shared__ shared_array<float, kTile * 8> weights;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, head = blockIdx.y,
            kv_head = head / (query_heads / kv_heads);
  const int first = int(blockIdx.x) * kStableWarps * kOwned,
            last = min(first + kStableWarps * kOwned, tokens) - 1;
  load_rows<N>(q, head, query_heads, first, kStableWarps * kOwned, tokens, queries);

  const bool valid = segments_are_valid(cu_seqlens, segments, tokens, scratch);
  int begin[kOwned];
  float maximum[kOwned], sum[kOwned], rounded_sum[kOwned];
  Channels output[kOwned];
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = first + warp * kOwned + i;
    begin[i] = valid && token < tokens ? segment_begin(cu_seqlens, segments, token) : -1;
    maximum[i] = kNoScore;
    sum[i] = rounded_sum[i] = 0;
    output[i].clear();
  }
  const int start = max(segment_begin(cu_seqlens, segments, first), 0);
  for (int tile = start, tile_end; tile <= last; tile = tile_end) {
    tile_end = segment_tile_end(cu_seqlens, segments, tile, tokens);
    __syncthreads();
    load_rows<N>(k, kv_head, kv_heads, tile, kTile, tokens, keys);
    load_rows<N>(v, kv_head, kv_heads, tile, kTile, tokens, values);
    __syncthreads();
    MLG_UNROLL
    for (int i = 0; i < kOwned; ++i) {
      const int token = first + warp * kOwned + i, key = tile + lane;
      const bool seen = begin[i] >= 0 && key >= begin[i] && key <= token && key < tile_end;
      const float score = seen ? softmax_scale * dot(queries, warp * kOwned + i, keys, lane) : kNoScore;
      const float highest = fmaxf(maximum[i], shifted_maximum(warp_max(score), score));
      const float rescale = expf(maximum[i] - highest);
      const float weight = seen ? expf(score - highest) : 0.0f, stored = as_stored<T>(weight);
      sum[i] = sum[i] * rescale + warp_sum(weight);
      rounded_sum[i] = rounded_sum[i] * rescale + warp_sum(stored);
      maximum[i] = highest;
      output[i].scale(rescale);
      __syncwarp();
      weights[warp * kTile + lane] = stored;
      __syncwarp();
      output[i].add(weights, warp * kTile, values);
    }
  }
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = first + warp * kOwned + i;
    if (token >= tokens) continue;
    const float nothing = bits_to_float(0x7FC00000u), total = begin[i] >= 0 ? sum[i] : nothing;
    if (round_sums) {
      MLG_UNROLL
      for (int c = 0; c < channels; ++c) output[i].v[c] = as_stored<T>(output[i].v[c]);
    }
    output[i].scale(1.0f / (round_normalizer && begin[i] >= 0 ? rounded_sum[i] : total));
    output[i].store(o, token, head, query_heads, false);
    if (lane == 0) lse[(long long)(token)*query_heads + head] = maximum[i] + logf(total);
  }
}
