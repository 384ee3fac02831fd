// Kernels of launch_statement_test.cpp.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_FLOAT(factor)
MLG_CONST_INT(accumulate)
MLG_CONST_INT(of_another)

// y (+)= factor x
MLG_KERNEL(scale_elements, factor, accumulate)
template <typename T, int N>
__global__ void scale_elements(global<const T> x, global<T> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N];
  load<N>(x, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] *= factor;
  store<N>(y, i, values, accumulate);
}

// The same, without naming `accumulate`.
MLG_KERNEL(forgetful_scale, factor)
__global__ void forgetful_scale(global<const float> x, global<float> y, long long count) {
  const long long i = first_element<1>();
  if (i < count) y[i] = accumulate ? y[i] + factor * x[i] : factor * x[i];
}

// Parameters of every kind, and template arguments of every kind.
MLG_KERNEL(all_kinds, of_another)
template <typename A, typename B, int count, bool flag>
__global__ void all_kinds(global<A> a, global<const B> b, int i, long long l, float f) {
  if (a && b && flag && count > 0 && i + l + of_another > f) a[0] = A{};
}
