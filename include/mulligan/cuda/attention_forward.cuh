// The forward pass of the own attention (attention.cuh), for any rule by which an online softmax takes in keys.
#pragma once

#include <mulligan/cuda/attention.cuh>

namespace {

MLG_CONST_FLOAT(softmax_scale)

constexpr int kForwardWarps = 8;
constexpr float kNoScore = -3.0e38f;

// On q [T, H, h], k and v [T, K, h], cu_seqlens [N + 1]:
//   o = softmax(scale q k^T) v inside each segment, causal, or of every query over all of its keys where
//   `bidirectional`; lse [T, H] = log of the softmax's denominator
//
// The online softmax of FlashAttention (Dao et al., 2022): keys in tiles of 32, one key per lane; f32
// arithmetic, no tensor cores. Where cu_seqlens does not rise from 0 to T, everything is NaN. Determinism: a
// query's keys are read in order. With `restart` the tiles of each segment begin where it begins (otherwise
// where the segment of the block's first query does), so that a segment's bits do not depend on what lies
// before it.
//
// Softmax, of one query, in each lane of its warp:
//   float maximum = kNoScore, sum = 0        of all keys taken in: what scores are relative to, sum of weights
//   float take(bool seen, float score, float& rescale)
//                                            the weight of the lane's key, of a tile that is taken in; rescale:
//                                            the factor of all weights before
//   float finish(Channels& sums) const       what the weighted sums of values are divided by
template <typename Softmax, int N, typename T>
__device__ inline void attend(global<const T> q, global<const T> k, global<const T> v,
                              global<const int> cu_seqlens, global<T> o, global<float> lse, int tokens,
                              int segments, bool restart, bool bidirectional = false) {
  using Rows = OwnedRows<kForwardWarps>;
  __shared__ shared_array<float, 32> scratch;
  __shared__ Tile keys, values;
  __shared__ shared_array<float, Rows::kRows * kStride> queries;
  __shared__ Weights weights;
  const Rows rows(tokens);
  const int head = blockIdx.y, kv_head = head / (query_heads / kv_heads);
  load_rows<N>(q, head, query_heads, rows.first, Rows::kRows, tokens, queries);

  const bool valid = segments_are_valid(cu_seqlens, segments, tokens, scratch);
  int begin[kOwned], end[kOwned];  // of the keys that a query sees
  Softmax softmax[kOwned];
  Channels output[kOwned];
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = rows.token(i);
    begin[i] = valid && token < tokens ? segment_begin(cu_seqlens, segments, token) : -1;
    end[i] = keys_end(cu_seqlens, segments, token, tokens, bidirectional);
    output[i].clear();
  }
  const int start = max(segment_begin(cu_seqlens, segments, rows.first), 0),
            past = keys_end(cu_seqlens, segments, rows.last, tokens, bidirectional);
  for (int tile = start, tile_end; tile < past; tile = tile_end) {
    tile_end = restart ? segment_tile_end(cu_seqlens, segments, tile, tokens) : tile + kTile;
    load_tiles<N>(k, v, kv_head, kv_heads, tile, tokens, keys, values);
    MLG_UNROLL
    for (int i = 0; i < kOwned; ++i) {
      const int key = tile + rows.lane;
      const bool seen = begin[i] >= 0 && key >= begin[i] && key < end[i] && key < tile_end;
      const float score = seen ? softmax_scale * dot(queries, rows.row(i), keys, rows.lane) : kNoScore;
      float rescale;
      const float weight = softmax[i].take(seen, score, rescale);
      output[i].scale(rescale);
      output[i].add(weight, weights, values);
    }
  }
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = rows.token(i);
    if (token >= tokens) continue;
    const float nothing = bits_to_float(0x7FC00000u), divisor = softmax[i].finish(output[i]);
    output[i].scale(1.0f / (begin[i] >= 0 ? divisor : nothing));
    output[i].store(o, token, head, query_heads, false);
    if (rows.lane != 0) continue;
    const float total = begin[i] >= 0 ? softmax[i].sum : nothing;
    lse[(long long)(token)*query_heads + head] = softmax[i].maximum + logf(total);
  }
}

}  // namespace
