// leaky_relu_squared, element by element:  y = (u > 0 ? u : slope u)^2
//   du (+)= dy (u > 0 ? 2 u : 2 slope^2 u)
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_FLOAT(slope)
MLG_CONST_INT(accumulate_du)

MLG_KERNEL(leaky_relu_squared_fwd, slope)
template <typename T, int N>
__global__ void leaky_relu_squared_fwd(global<const T> u, global<T> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N];
  load<N>(u, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    const float bent = values[n] > 0 ? values[n] : slope * values[n];
    values[n] = bent * bent;
  }
  store<N>(y, i, values);
}

MLG_KERNEL(leaky_relu_squared_bwd, slope, accumulate_du)
template <typename T, int N>
__global__ void leaky_relu_squared_bwd(global<const T> u, global<const T> dy, global<T> du, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N], gradient[N];
  load<N>(u, i, values);
  load<N>(dy, i, gradient);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) gradient[n] *= values[n] * (values[n] > 0 ? 2.0f : 2.0f * slope * slope);
  store<N>(du, i, gradient, accumulate_du);
}
