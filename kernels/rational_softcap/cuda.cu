// rational_softcap, element by element, with r = 1 / sqrt(z^2 + cap^2):  y = cap z r, in f32
//   dz (+)= dy (cap r)^3
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_FLOAT(cap)
MLG_CONST_INT(accumulate_dz)

MLG_KERNEL(rational_softcap_fwd, cap)
template <typename T, int N>
__global__ void rational_softcap_fwd(global<const T> z, global<float> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N];
  load<N>(z, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] *= cap * rsqrtf(values[n] * values[n] + cap * cap);
  store<N>(y, i, values);
}

MLG_KERNEL(rational_softcap_bwd, cap, accumulate_dz)
template <typename T, int N>
__global__ void rational_softcap_bwd(global<const T> z, global<const float> dy, global<T> dz,
                                     long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N], upstream[N];
  load<N>(z, i, values);
  load<N>(dy, i, upstream);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    const float shrunk = cap * rsqrtf(values[n] * values[n] + cap * cap);
    upstream[n] *= shrunk * shrunk * shrunk;
  }
  store<N>(dz, i, upstream, accumulate_dz);
}
