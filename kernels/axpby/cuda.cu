// axpby, element by element: y (+)= alpha a + beta b; tensors f32 or bf16, or f32 or f16; b may be null.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_FLOAT(alpha)
MLG_CONST_FLOAT(beta)
MLG_CONST_INT(accumulate_y)

MLG_KERNEL(axpby, alpha, beta, accumulate_y)
template <typename A, typename B, typename Y, int N>
__global__ void axpby(global<const A> a, global<const B> b, global<Y> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N], added[N] = {};
  load<N>(a, i, values);
  if (b) load<N>(b, i, added);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] = alpha * values[n] + beta * added[n];
  store<N>(y, i, values, accumulate_y);
}
