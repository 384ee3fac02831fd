// silu_gate, element by element:  with s = sigmoid(g):  y = g s u
//   dg (+)= dy u s (1 + g (1 - s)),  du (+)= dy g s
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(accumulate_dg)
MLG_CONST_INT(accumulate_du)

__device__ inline float gate_sigmoid(float g) {
  return __fdividef(1.0f, 1.0f + __expf(-g));
}

MLG_KERNEL(silu_gate_fwd)
template <typename T, int N>
__global__ void silu_gate_fwd(global<const T> g, global<const T> u, global<T> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float gate[N], values[N];
  load<N>(g, i, gate);
  load<N>(u, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] *= gate[n] * gate_sigmoid(gate[n]);
  store<N>(y, i, values);
}

// dg, du may be null.
MLG_KERNEL(silu_gate_bwd, accumulate_dg, accumulate_du)
template <typename T, int N>
__global__ void silu_gate_bwd(global<const T> g, global<const T> u, global<const T> dy, global<T> dg,
                              global<T> du, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float gate[N], values[N], upstream[N];
  load<N>(g, i, gate);
  load<N>(u, i, values);
  load<N>(dy, i, upstream);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    const float s = gate_sigmoid(gate[n]);
    values[n] *= upstream[n] * s * (1.0f + gate[n] * (1.0f - s));
    upstream[n] *= gate[n] * s;
  }
  if (dg) store<N>(dg, i, values, accumulate_dg);
  if (du) store<N>(du, i, upstream, accumulate_du);
}
