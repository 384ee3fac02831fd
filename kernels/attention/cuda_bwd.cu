// attention_bwd: with p = exp(scale q k^T - lse) and D = sum over channels of o do:
//   dv (+)= p^T do,  dp = do v^T,  ds = scale p (dp - D),  dq (+)= ds k,  dk (+)= ds^T q
// q, o, do, dq [T, H, h], k, v, dk, dv [T, K, h], lse [T, H], cu_seqlens [N + 1]; causal inside each segment.
// attention_bidirectional_bwd: a query sees all keys of its segment (bidirectional = 1).
//
// Three launches: D; dq, a block owning queries; dk and dv, a block owning keys and adding up the query heads
// that share them. p is computed twice, so no sum crosses blocks. Determinism: every sum is made by one
// thread, in order.
#include <mulligan/cuda/attention.cuh>

MLG_CONST_FLOAT(softmax_scale)
MLG_CONST_INT(bidirectional)
MLG_CONST_INT(accumulate_dq)
MLG_CONST_INT(accumulate_dk)
MLG_CONST_INT(accumulate_dv)

constexpr int kBackwardWarps = 4;

using Rows = OwnedRows<kBackwardWarps>;
using Owned = shared_array<float, Rows::kRows * kStride>;

// `row_dots` [T, H] = D. One warp per row.
MLG_KERNEL(attention_bwd_rows, MLG_ATTENTION_CONSTANTS)
template <typename T>
__global__ void attention_bwd_rows(global<const T> o, global<const T> d_o, global<float> row_dots,
                                   int tokens) {
  const int token = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, head = blockIdx.y,
            lane = threadIdx.x % 32;
  if (token >= tokens) return;
  const long long row = ((long long)(token)*query_heads + head) * head_width;
  float sum = 0;
  for (int j = lane; j < head_width; j += 32) sum += to_float(o[row + j]) * to_float(d_o[row + j]);
  sum = warp_sum(sum);
  if (lane == 0) row_dots[(long long)(token)*query_heads + head] = sum;
}

MLG_KERNEL(attention_bwd_queries, softmax_scale, bidirectional, accumulate_dq, MLG_ATTENTION_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(kBackwardWarps * 32)
    attention_bwd_queries(global<const T> q, global<const T> k, global<const T> v,
                          global<const int> cu_seqlens, global<const float> lse, global<const T> d_o,
                          global<const float> row_dots, global<T> dq, int tokens, int segments) {
  __shared__ Tile keys, values;
  __shared__ Owned queries, gradients;
  __shared__ Weights weights;
  const Rows rows(tokens);
  const int head = blockIdx.y, kv_head = head / (query_heads / kv_heads);
  load_rows<N>(q, head, query_heads, rows.first, Rows::kRows, tokens, queries);
  load_rows<N>(d_o, head, query_heads, rows.first, Rows::kRows, tokens, gradients);
  int begin[kOwned], end[kOwned];  // of the keys that a query sees
  float logsum[kOwned], along[kOwned];
  Channels output[kOwned];
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = rows.token(i);
    begin[i] = token < tokens ? segment_begin(cu_seqlens, segments, token) : -1;
    end[i] = keys_end(cu_seqlens, segments, token, tokens, bidirectional);
    logsum[i] = token < tokens ? lse[(long long)(token)*query_heads + head] : 0.0f;
    along[i] = token < tokens ? row_dots[(long long)(token)*query_heads + head] : 0.0f;
    output[i].clear();
  }
  const int start = max(segment_begin(cu_seqlens, segments, rows.first), 0),
            past = keys_end(cu_seqlens, segments, rows.last, tokens, bidirectional);
  for (int tile = start; tile < past; tile += kTile) {
    load_tiles<N>(k, v, kv_head, kv_heads, tile, tokens, keys, values);
    MLG_UNROLL
    for (int i = 0; i < kOwned; ++i) {
      const int key = tile + rows.lane;
      float weight = 0;
      if (begin[i] >= 0 && key >= begin[i] && key < end[i]) {
        const float p = __expf(softmax_scale * dot(queries, rows.row(i), keys, rows.lane) - logsum[i]);
        weight = softmax_scale * p * (dot(gradients, rows.row(i), values, rows.lane) - along[i]);
      }
      output[i].add(weight, weights, keys);
    }
  }
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = rows.token(i);
    if (token < tokens) output[i].store(dq, token, head, query_heads, accumulate_dq);
  }
}

MLG_KERNEL(attention_bwd_keys, softmax_scale, bidirectional, accumulate_dk, accumulate_dv,
           MLG_ATTENTION_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(kBackwardWarps * 32)
    attention_bwd_keys(global<const T> q, global<const T> k, global<const T> v, global<const int> cu_seqlens,
                       global<const float> lse, global<const T> d_o, global<const float> row_dots,
                       global<T> dk, global<T> dv, int tokens, int segments) {
  __shared__ Tile queries, gradients;
  __shared__ Owned keys, values;
  __shared__ Weights weights;
  const Rows rows(tokens);
  const int kv_head = blockIdx.y, group = query_heads / kv_heads;
  load_rows<N>(k, kv_head, kv_heads, rows.first, Rows::kRows, tokens, keys);
  load_rows<N>(v, kv_head, kv_heads, rows.first, Rows::kRows, tokens, values);
  Channels key_gradient[kOwned], value_gradient[kOwned];
  int begin[kOwned];
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = rows.token(i);
    begin[i] = token < tokens ? segment_begin(cu_seqlens, segments, token) : -1;
    key_gradient[i].clear();
    value_gradient[i].clear();
  }
  const int start = bidirectional ? max(segment_begin(cu_seqlens, segments, rows.first), 0) : rows.first,
            end = segment_end(cu_seqlens, segments, rows.last, tokens);
  for (int member = 0; member < group; ++member) {
    const int head = kv_head * group + member;
    for (int tile = start; tile < end; tile += kTile) {
      load_tiles<N>(q, d_o, head, query_heads, tile, tokens, queries, gradients);
      const int query = tile + rows.lane;
      const int query_begin = query < tokens ? segment_begin(cu_seqlens, segments, query) : -1;
      const long long at = (long long)(query)*query_heads + head;
      const float logsum = query < tokens ? lse[at] : 0.0f, along = query < tokens ? row_dots[at] : 0.0f;
      MLG_UNROLL
      for (int i = 0; i < kOwned; ++i) {
        float p = 0, weight = 0;
        if (begin[i] >= 0 && query_begin == begin[i] && (bidirectional || query >= rows.token(i))) {
          p = __expf(softmax_scale * dot(keys, rows.row(i), queries, rows.lane) - logsum);
          weight = softmax_scale * p * (dot(values, rows.row(i), gradients, rows.lane) - along);
        }
        value_gradient[i].add(p, weights, gradients);
        key_gradient[i].add(weight, weights, queries);
      }
    }
  }
  MLG_UNROLL
  for (int i = 0; i < kOwned; ++i) {
    const int token = rows.token(i);
    if (token >= tokens) continue;
    key_gradient[i].store(dk, token, kv_head, kv_heads, accumulate_dk);
    value_gradient[i].store(dv, token, kv_head, kv_heads, accumulate_dv);
  }
}
