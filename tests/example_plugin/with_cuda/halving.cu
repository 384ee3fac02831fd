// master *= 1 - lr, element by element.
#include <mulligan/cuda/elements.cuh>

MLG_KERNEL(halving_step)
template <int N>
__global__ void halving_step(global<float> master, global<const float> scalars, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float p[N];
  load<N>(master, i, p);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) p[n] *= 1.0f - scalars[0];
  store<N>(master, i, p);
}
