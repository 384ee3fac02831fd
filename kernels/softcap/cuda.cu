// softcap, element by element:  y = cap tanh(z / cap)
//   dz (+)= dy (1 - tanh(z / cap)^2);  with e = exp(-2 |z| / cap) the slope is 4 e / (1 + e)^2
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_FLOAT(cap)
MLG_CONST_FLOAT(inverse_cap)
MLG_CONST_INT(accumulate_dz)

MLG_KERNEL(softcap_fwd, cap, inverse_cap)
template <typename T, int N>
__global__ void softcap_fwd(global<const T> z, global<T> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N];
  load<N>(z, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] = cap * tanhf(values[n] * inverse_cap);
  store<N>(y, i, values);
}

MLG_KERNEL(softcap_bwd, inverse_cap, accumulate_dz)
template <typename T, int N>
__global__ void softcap_bwd(global<const T> z, global<const T> dy, global<T> dz, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N], upstream[N];
  load<N>(z, i, values);
  load<N>(dy, i, upstream);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    const float e = __expf(-2.0f * fabsf(values[n] * inverse_cap));
    upstream[n] *= __fdividef(4.0f * e, (1.0f + e) * (1.0f + e));
  }
  store<N>(dz, i, upstream, accumulate_dz);
}
