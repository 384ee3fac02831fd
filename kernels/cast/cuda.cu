// cast, element by element:  y = x in y's dtype; f32, bf16, f16, f64 in any combination, rounded once to
// nearest even. The same dtype: a copy, bit for bit.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

// double to float such that rounding the result to a format of at most 22 bits equals rounding the double
// directly: an inexact result gets an odd last bit ("round to odd"),
// so it is never a tie of the second rounding.
__device__ inline float round_to_odd(double value) {
  const float nearest = float(value);
  const uint32_t bits = float_to_bits(nearest);
  const double back = nearest;
  if (back == value || value != value || (bits & 1u) != 0) return nearest;
  const bool too_far_from_zero = (nearest > 0) == (back > value);
  return bits_to_float(nearest == 0 || !too_far_from_zero ? bits + 1u : bits - 1u);
}

// An element as a type that holds its value: float, or double.
__device__ inline float widen(float value) {
  return value;
}
__device__ inline float widen(bf16 value) {
  return to_float(value);
}
__device__ inline float widen(f16 value) {
  return to_float(value);
}
__device__ inline double widen(double value) {
  return value;
}

// A widened element in T.
template <typename T>
struct Rounded;
template <>
struct Rounded<float> {
  __device__ static float from(float value) { return value; }
  __device__ static float from(double value) { return float(value); }
};
template <>
struct Rounded<double> {
  __device__ static double from(double value) { return value; }
};
template <>
struct Rounded<bf16> {
  __device__ static bf16 from(float value) { return Narrow<bf16>::from(value); }
  __device__ static bf16 from(double value) { return from(round_to_odd(value)); }
};
template <>
struct Rounded<f16> {
  __device__ static f16 from(float value) { return Narrow<f16>::from(value); }
  __device__ static f16 from(double value) { return from(round_to_odd(value)); }
};

template <typename To, typename From>
struct Converted {
  __device__ static To from(From value) { return Rounded<To>::from(widen(value)); }
};
template <typename T>
struct Converted<T, T> {
  __device__ static T from(T value) { return value; }
};

MLG_KERNEL(cast)
template <typename From, typename To, int N>
__global__ void cast(global<const From> x, global<To> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  From from[N];
  To to[N];
  load_raw<N>(x, i, from);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) to[n] = Converted<To, From>::from(from[n]);
  store_raw<N>(y, i, to);
}
