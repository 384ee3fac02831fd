// One head (heads.cuh) normed and rotated, forward and backward:
//   u = r x with r = 1 / sqrt(mean(x^2) + eps) (norm = 0: r = 1), rotated, times gain
// Rotation of the first 2 half_dims elements at a position, cos and sin [P, half_dims]:
//   (a, b) = (u[j], u[j + half_dims]) -> (a cos + b sin, -a sin + b cos)
// Backward: w = the transposed rotation of dy, p = sum(w x):
//   dx (+)= gain r (w - x r^2 p / h)  (norm = 0: gain w),   dgain += r p
#pragma once

#include <mulligan/cuda/heads.cuh>

namespace {

MLG_CONST_INT(half_dims)
MLG_CONST_INT(normalised)
MLG_CONST_FLOAT(eps)
#define MLG_ROTARY_CONSTANTS half_dims, normalised, eps, MLG_HEAD_CONSTANTS

// values: the head x[at ...], which becomes the one rotated by `direction` (1: forward, -1: transposed).
template <typename T, int N>
__device__ inline void rotate_head(global<const T> x, long long at, global<const float> cos,
                                   global<const float> sin, long long position, float direction, bool active,
                                   HeadValues<N>& values) {
  for_head<N>([&](int i, int column) {
    if (!active || column >= 2 * half_dims) return;
    const bool lower = column < half_dims;
    const long long angle = position * half_dims + (lower ? column : column - half_dims);
    float partner[N], c[N], s[N];
    load<N>(x, at + (lower ? column + half_dims : column - half_dims), partner);
    load<N>(cos, angle, c);
    load<N>(sin, angle, s);
    const float sign = lower ? direction : -direction;
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] = values.v[i][n] * c[n] + sign * partner[n] * s[n];
  });
}

// r, from the sum of squares of the head.
__device__ inline float normaliser(float squares) {
  return normalised ? rsqrtf(squares / float(head_width) + eps) : 1.0f;
}

template <int N>
__device__ inline float head_squares(const HeadValues<N>& x) {
  return head_sum<N>([&](int i, int n) { return x.v[i][n] * x.v[i][n]; });
}

template <int N>
__device__ inline void scale_head(HeadValues<N>& values, float factor) {
  for_head<N>([&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] *= factor;
  });
}

// Of a head x and the transposed rotation w of its dy: dx = gain r (w - along x).
struct HeadGradient {
  float r, along, share;  // share: r p
};

// All lanes of the warp must call it.
template <int N>
__device__ inline HeadGradient head_gradient(const HeadValues<N>& x, const HeadValues<N>& w) {
  const float product = head_sum<N>([&](int i, int n) { return w.v[i][n] * x.v[i][n]; });
  const float r = normaliser(head_squares(x));
  return {r, normalised ? r * r * product / float(head_width) : 0.0f, r * product};
}

// w = factor (w - along x)
template <int N>
__device__ inline void subtract_head(const HeadValues<N>& x, float factor, float along, HeadValues<N>& w) {
  for_head<N>([&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) w.v[i][n] = factor * (w.v[i][n] - along * x.v[i][n]);
  });
}

}  // namespace
