// qkv_split_norm_rope: a row of packed [T, W] holds H query heads, K key heads and K value heads of h
// elements, H gates and padding, the tail.
//   q [T, H, h], k [T, K, h]: the heads as in rotary.cuh, gain [H] of queries alone;
//   v [T, K, h], gate [T, H]: as they lie
// Backward: the rows of dpacked (+)= gradients of the heads before norm and rotation, dv + dv_xsa, dgate, and
// zeros where nothing is (an absent one counts as zero);  dgain [H] as in rotary.cuh.
//
// A few lanes per head, and as many for the tail. Determinism: tokens are independent; dgain goes through
// partial sums of fixed pieces of tokens.
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rotary.cuh>

MLG_CONST_INT(query_heads)
MLG_CONST_INT(kv_heads)
MLG_CONST_INT(row_length)
MLG_CONST_INT(packed_width)
MLG_CONST_INT(slots)  // groups of a token: its heads, and one for the tail where there is something to do
MLG_CONST_INT(accumulate_dpacked)

// The heads of a token: queries, keys, values.
__device__ inline int turned_heads() {
  return query_heads + kv_heads;
}
__device__ inline int all_heads() {
  return query_heads + 2 * kv_heads;
}

// Elements [token query_heads, ...) of gate = the gates of a packed row, M at a time.
template <typename T, int M>
__device__ inline void split_gates(global<const T> packed, global<T> gate, long long token) {
  const long long tail = token * packed_width + all_heads() * head_width;
  for (int column = head_lane() * M; column < query_heads; column += head_lanes * M) {
    float passed[M];
    load<M>(packed, tail + column, passed);
    store<M>(gate, token * query_heads + column, passed);
  }
}

// The tail of a row of dpacked (+)= dgate, which may be null, and zeros, M at a time.
template <typename T, int M>
__device__ inline void join_tail(global<const T> dgate, global<T> dpacked, long long token) {
  const int tail = all_heads() * head_width;
  for (int column = head_lane() * M; column < packed_width - tail; column += head_lanes * M) {
    float passed[M] = {};
    if (dgate && column < query_heads) load<M>(dgate, token * query_heads + column, passed);
    store<M>(dpacked, token * packed_width + tail + column, passed, accumulate_dpacked);
  }
}

// gain and gate may be null.
MLG_KERNEL(qkv_split_norm_rope_fwd, query_heads, kv_heads, packed_width, slots, row_length,
           MLG_ROTARY_CONSTANTS)
template <typename T, int N>
__global__ void qkv_split_norm_rope_fwd(global<const T> packed, global<const float> cos,
                                        global<const float> sin, global<const float> gain, global<T> q,
                                        global<T> k, global<T> v, global<T> gate, long long tokens) {
  const long long token = head_group() / slots;
  const int slot = int(head_group() % slots);
  const long long row = token * packed_width, at = row + slot * head_width;
  HeadValues<N> values;
  load_head<N>(packed, at, token < tokens && slot < all_heads(), values);
  const float squares = head_squares(values);
  if (token >= tokens) return;
  if (slot < turned_heads()) {
    const bool query = slot < query_heads;
    rotate_head<T, N>(packed, at, cos, sin, token % row_length, 1.0f, true, values);
    scale_head(values, normaliser(squares) * (gain && query ? float(gain[slot]) : 1.0f));
    if (query) {
      store_head<N>(q, (token * query_heads + slot) * head_width, values, false);
    } else {
      store_head<N>(k, (token * kv_heads + slot - query_heads) * head_width, values, false);
    }
  } else if (slot < all_heads()) {
    store_head<N>(v, (token * kv_heads + slot - turned_heads()) * head_width, values, false);
  } else if (gate) {
    if (query_heads % N == 0) {
      split_gates<T, N>(packed, gate, token);
    } else {
      split_gates<T, 1>(packed, gate, token);
    }
  }
}

// gain, dv_xsa and dgate may be null; partial: [pieces, H], or null without dgain.
// A group takes one head of the tokens of a piece.
MLG_KERNEL(qkv_split_norm_rope_bwd, query_heads, kv_heads, packed_width, slots, row_length,
           accumulate_dpacked, MLG_ROTARY_CONSTANTS)
template <typename T, int N>
__global__ void qkv_split_norm_rope_bwd(global<const T> packed, global<const float> cos,
                                        global<const float> sin, global<const float> gain, global<const T> dq,
                                        global<const T> dk, global<const T> dv, global<const T> dv_xsa,
                                        global<const T> dgate, global<T> dpacked, global<float> partial,
                                        long long tokens, int piece_tokens) {
  const long long piece = head_group() / slots;
  const int slot = int(head_group() % slots);
  const bool query = slot < query_heads, turned = slot < turned_heads(), head = slot < all_heads();
  // The gradients of the group's head, the same head of every token.
  const global<const T> upstream = query ? dq : turned ? dk : dv;
  const int upstream_heads = query ? query_heads : kv_heads,
            upstream_head = slot - (query    ? 0
                                    : turned ? query_heads
                                             : turned_heads());
  const float scale = gain && query ? float(gain[slot]) : 1.0f;
  float sum = 0;
  for (int i = 0; i < piece_tokens; ++i) {
    const long long token = piece * piece_tokens + i, row = token * packed_width,
                    at = row + slot * head_width,
                    from = (token * upstream_heads + upstream_head) * head_width;
    const bool active = token < tokens;
    HeadValues<N> x, w;
    load_head<N>(packed, at, active && turned, x);
    load_head<N>(upstream, from, active && head, w);
    if (turned) {
      rotate_head<T, N>(upstream, from, cos, sin, token % row_length, -1.0f, active, w);
    } else if (head && dv_xsa) {
      HeadValues<N> other;
      load_head<N>(dv_xsa, from, active, other);
      for_head<N>([&](int j, int) {
        MLG_UNROLL
        for (int n = 0; n < N; ++n) w.v[j][n] += other.v[j][n];
      });
    }
    const HeadGradient gradient = head_gradient(x, w);
    if (!active) continue;
    sum += gradient.share;
    if (turned) subtract_head(x, scale * gradient.r, gradient.along, w);
    if (head) {
      store_head<N>(dpacked, at, w, accumulate_dpacked);
    } else if (query_heads % N == 0) {
      join_tail<T, N>(dgate, dpacked, token);
    } else {
      join_tail<T, 1>(dgate, dpacked, token);
    }
  }
  if (partial && query && head_lane() == 0 && piece * piece_tokens < tokens)
    partial[piece * query_heads + slot] = sum;
}
