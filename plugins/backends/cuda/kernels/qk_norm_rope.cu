// qk_norm_rope on x [T, G, h], per head:  u = r x with r = 1 / sqrt(mean(x^2) + eps) (norm = 0: r = 1),
// rotated, times gain [G]. Rotation of the first 2 half_dims elements at position t mod row_length, cos and
// sin [P, half_dims]:
//   (a, b) = (u[j], u[j + half_dims]) -> (a cos + b sin, -a sin + b cos)
// Backward: w = the transposed rotation of dy, p = sum(w x):
//   dx (+)= gain r (w - x r^2 p / h)  (norm = 0: gain w),   dgain[g] += sum over tokens of r p
//
// A few lanes per head. Determinism: heads are independent; dgain goes through partial sums of fixed pieces
// of tokens.
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/heads.cuh>

MLG_CONST_INT(heads)
MLG_CONST_INT(half_dims)
MLG_CONST_INT(row_length)
MLG_CONST_INT(normalised)
MLG_CONST_FLOAT(eps)
MLG_CONST_INT(accumulate_dx)

// values = the head at `at`, rotated by `direction` (1: forward, -1: transposed).
template <typename T, int N>
__device__ inline void load_rotated(global<const T> x, global<const float> cos, global<const float> sin,
                                    long long at, long long token, float direction, bool active,
                                    HeadValues<N>& values) {
  load_head<N>(x, at, active, values);
  for_head<N>([&](int i, int column) {
    if (!active || column >= 2 * half_dims) return;
    const bool lower = column < half_dims;
    const long long angle = token % row_length * half_dims + (lower ? column : column - half_dims);
    float partner[N], c[N], s[N];
    load<N>(x, at + (lower ? column + half_dims : column - half_dims), partner);
    load_floats<N>(cos, angle, c);
    load_floats<N>(sin, angle, s);
    const float sign = lower ? direction : -direction;
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] = values.v[i][n] * c[n] + sign * partner[n] * s[n];
  });
}

__device__ inline float normaliser(float squares) {
  return normalised ? rsqrtf(squares / float(head_width) + eps) : 1.0f;
}

// gain may be null.
MLG_KERNEL(qk_norm_rope_fwd, heads, half_dims, row_length, normalised, eps, MLG_HEAD_CONSTANTS)
template <typename T, int N>
__global__ void qk_norm_rope_fwd(global<const T> x, global<const float> cos, global<const float> sin,
                                 global<const float> gain, global<T> y, long long rows) {
  const long long row = head_group(), at = row * head_width;
  const bool active = row < rows;
  HeadValues<N> values, turned;
  load_head<N>(x, at, active, values);
  const float squares = head_sum<N>([&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  if (!active) return;
  load_rotated<T, N>(x, cos, sin, at, row / heads, 1.0f, true, turned);
  const float factor = normaliser(squares) * (gain ? float(gain[row % heads]) : 1.0f);
  for_head<N>([&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) turned.v[i][n] *= factor;
  });
  store_head<N>(y, at, turned, false);
}

// gain may be null; partial: [pieces, G], or null without dgain.
// A group takes one head of the tokens of a piece.
MLG_KERNEL(qk_norm_rope_bwd, heads, half_dims, row_length, normalised, eps, accumulate_dx, MLG_HEAD_CONSTANTS)
template <typename T, int N>
__global__ void qk_norm_rope_bwd(global<const T> x, global<const float> cos, global<const float> sin,
                                 global<const float> gain, global<const T> dy, global<T> dx,
                                 global<float> partial, long long tokens, int piece_tokens) {
  const long long piece = head_group() / heads;
  const int head = int(head_group() % heads);
  const float scale = gain ? float(gain[head]) : 1.0f;
  float sum = 0;
  for (int i = 0; i < piece_tokens; ++i) {
    const long long token = piece * piece_tokens + i, at = (token * heads + head) * head_width;
    const bool active = token < tokens;
    HeadValues<N> a, w;
    load_head<N>(x, at, active, a);
    load_rotated<T, N>(dy, cos, sin, at, token, -1.0f, active, w);
    const float product = head_sum<N>([&](int j, int n) { return w.v[j][n] * a.v[j][n]; });
    const float squares = head_sum<N>([&](int j, int n) { return a.v[j][n] * a.v[j][n]; });
    const float r = normaliser(squares), along = normalised ? r * r * product / float(head_width) : 0.0f;
    if (!active) continue;
    sum += r * product;
    for_head<N>([&](int j, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) w.v[j][n] = scale * r * (w.v[j][n] - along * a.v[j][n]);
    });
    store_head<N>(dx, at, w, accumulate_dx);
  }
  if (partial && head_lane() == 0 && piece * piece_tokens < tokens) partial[piece * heads + head] = sum;
}
