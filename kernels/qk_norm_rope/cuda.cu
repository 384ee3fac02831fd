// qk_norm_rope on x [T, G, h]: each head as in rotary.cuh, gain and dgain [G].
//
// The row's length is an argument: windows of test-time training have many, and share a function.
//
// A few lanes per head. Determinism: heads are independent; dgain goes through partial sums of fixed pieces
// of tokens.
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rotary.cuh>

MLG_CONST_INT(heads)
MLG_CONST_INT(accumulate_dx)

// gain may be null.
MLG_KERNEL(qk_norm_rope_fwd, heads, MLG_ROTARY_CONSTANTS)
template <typename T, int N>
__global__ void qk_norm_rope_fwd(global<const T> x, global<const float> cos, global<const float> sin,
                                 global<const float> gain, global<T> y, long long rows, int row_length) {
  const long long row = head_group(), at = row * head_width;
  const bool active = row < rows;
  HeadValues<N> values;
  load_head<N>(x, at, active, values);
  const float squares = head_squares(values);
  if (!active) return;
  rotate_head<T, N>(x, at, cos, sin, unsigned(row / heads) % unsigned(row_length), 1.0f, true, values);
  scale_head(values, normaliser(squares) * (gain ? float(gain[row % heads]) : 1.0f));
  store_head<N>(y, at, values, false);
}

// gain may be null; partial: [pieces, G], or null without dgain.
// A group takes one head of the tokens of a piece.
MLG_KERNEL(qk_norm_rope_bwd, heads, accumulate_dx, MLG_ROTARY_CONSTANTS)
template <typename T, int N>
__global__ void qk_norm_rope_bwd(global<const T> x, global<const float> cos, global<const float> sin,
                                 global<const float> gain, global<const T> dy, global<T> dx,
                                 global<float> partial, long long tokens, int piece_tokens, int row_length) {
  const long long piece = head_group() / heads;
  const int head = int(head_group() % heads);
  const float scale = gain ? float(gain[head]) : 1.0f;
  float sum = 0;
  for (int i = 0; i < piece_tokens; ++i) {
    const long long token = piece * piece_tokens + i, at = (token * heads + head) * head_width;
    const bool active = token < tokens;
    HeadValues<N> a, w;
    load_head<N>(x, at, active, a);
    load_head<N>(dy, at, active, w);
    rotate_head<T, N>(dy, at, cos, sin, unsigned(token) % unsigned(row_length), -1.0f, active, w);
    const HeadGradient gradient = head_gradient(a, w);
    if (!active) continue;
    sum += gradient.share;
    subtract_head(a, scale * gradient.r, gradient.along, w);
    store_head<N>(dx, at, w, accumulate_dx);
  }
  if (partial && head_lane() == 0 && piece * piece_tokens < tokens) partial[piece * heads + head] = sum;
}
