// Kernels that work on single elements of tensors of one shape: a thread takes N elements that lie side by
// side. Tensors of different dtypes go together: each is accessed at most 16 bytes at a time. The host
// side is element_plan.hpp.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

// The first of the running thread's elements.
template <int N>
__device__ inline long long first_element() {
  return (blockIdx.x * (long long)(blockDim.x) + threadIdx.x) * N;
}

// p[i..i+N) as stored. i must be a multiple of N.
template <int N, typename P>
__device__ inline void load_raw(P p, long long i, Element<P> (&out)[N]) {
  constexpr int kStep = N < kPack<Element<P>> ? N : kPack<Element<P>>;
  MLG_UNROLL
  for (int n = 0; n < N; n += kStep) copy_in<kStep>(p, i + n, out + n);
}
template <int N, typename P>
__device__ inline void store_raw(P p, long long i, const Element<P> (&values)[N]) {
  constexpr int kStep = N < kPack<Element<P>> ? N : kPack<Element<P>>;
  MLG_UNROLL
  for (int n = 0; n < N; n += kStep) copy_out<kStep>(p, i + n, values + n);
}

// p[i..i+N) as floats. P: global<T> or global<const T> of float, bf16 or f16.
template <int N, typename P>
__device__ inline void load_elements(P p, long long i, float (&out)[N]) {
  Element<P> values[N];
  load_raw<N>(p, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) out[n] = to_float(values[n]);
}

// p[i..i+N) = values, rounded; added to what is there where `accumulate`.
template <int N, typename P>
__device__ inline void store_elements(P p, long long i, const float (&values)[N], bool accumulate = false) {
  Element<P> stored[N];
  if (accumulate) load_raw<N>(p, i, stored);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    stored[n] = Narrow<Element<P>>::from(accumulate ? to_float(stored[n]) + values[n] : values[n]);
  }
  store_raw<N>(p, i, stored);
}

}  // namespace
