// attention_fwd on q [T, H, h], k and v [T, K, h], cu_seqlens [N + 1]:
//   o = softmax(scale q k^T) v, causal inside each segment; lse [T, H] = log of the softmax's denominator
// attention_bidirectional_fwd: the same over all keys of the segment (bidirectional = 1).
//
// The online softmax of FlashAttention (Dao et al., 2022): keys in tiles of 32, one key per lane; f32
// arithmetic, no tensor cores. Where cu_seqlens does not rise
// from 0 to T, everything is NaN. Determinism: a query's keys are read in order. With restart_tiles the tiles of
// each segment begin where it begins (otherwise where the segment of the block's first query does), so that a
// segment's bits do not depend on what lies before it.
#include <mulligan/cuda/attention.cuh>

MLG_CONST_FLOAT(softmax_scale)
MLG_CONST_INT(restart_tiles)
MLG_CONST_INT(bidirectional)

constexpr int kForwardWarps = 8;

MLG_KERNEL(attention_fwd, softmax_scale, restart_tiles, bidirectional, MLG_ATTENTION_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(kForwardWarps * 32)
    attention_fwd(global<const T> q, global<const T> k, global<const T> v, global<const int> cu_seqlens,
                  global<T> o, global<float> lse, int tokens, int segments) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ Tile keys, values;
  __shared__ shared_array<float, kForwardWarps * kOwned * kStride> queries;
  __shared__ shared_array<float, kTile * 8> weights;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, head = blockIdx.y,
            kv_head = head / (query_heads / kv_heads);
  const int first = int(blockIdx.x) * kForwardWarps * kOwned,
            last = min(first + kForwardWarps * kOwned, tokens) - 1;
  load_rows<N>(q, head, query_heads, first, kForwardWarps * kOwned, tokens, queries);

  const bool valid = segments_are_valid(cu_seqlens, segments, tokens, scratch);
  int begin[kOwned], end[kOwned];  // of the keys that a query sees
  float maximum[kOwned], sum[kOwned];
  Channels output[kOwned];
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = first + warp * kOwned + i;
    begin[i] = valid && token < tokens ? segment_begin(cu_seqlens, segments, token) : -1;
    end[i] = bidirectional ? segment_end(cu_seqlens, segments, token, tokens) : token + 1;
    maximum[i] = -3.0e38f;
    sum[i] = 0;
    output[i].clear();
  }
  const int start = max(segment_begin(cu_seqlens, segments, first), 0);
  const int past = bidirectional ? segment_end(cu_seqlens, segments, last, tokens) : last + 1;
  for (int tile = start, tile_end; tile < past; tile = tile_end) {
    tile_end = restart_tiles ? segment_tile_end(cu_seqlens, segments, tile, tokens) : tile + kTile;
    __syncthreads();
    load_rows<N>(k, kv_head, kv_heads, tile, kTile, tokens, keys);
    load_rows<N>(v, kv_head, kv_heads, tile, kTile, tokens, values);
    __syncthreads();
    MLG_UNROLL
    for (int i = 0; i < kOwned; ++i) {
      const int key = tile + lane;
      const bool seen = begin[i] >= 0 && key >= begin[i] && key < end[i] && key < tile_end;
      const float score = seen ? softmax_scale * dot(queries, warp * kOwned + i, keys, lane) : -3.0e38f;
      const float highest = fmaxf(maximum[i], warp_max(score)), rescale = __expf(maximum[i] - highest);
      const float weight = seen ? __expf(score - highest) : 0.0f;
      sum[i] = sum[i] * rescale + warp_sum(weight);
      maximum[i] = highest;
      output[i].scale(rescale);
      __syncwarp();
      weights[warp * kTile + lane] = weight;
      __syncwarp();
      output[i].add(weights, warp * kTile, values);
    }
  }
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = first + warp * kOwned + i;
    if (token >= tokens) continue;
    const float total = begin[i] >= 0 ? sum[i] : bits_to_float(0x7FC00000u);
    output[i].scale(1.0f / total);
    output[i].store(o, token, head, query_heads, false);
    if (lane == 0) lse[(long long)(token)*query_heads + head] = maximum[i] + logf(total);
  }
}
