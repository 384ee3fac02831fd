// round_fp8, element by element:  y = scale E(x / scale), E the nearest number of E4M3 or E5M2, ties to even; what
// is too large becomes the largest one, NaN stays NaN.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(mantissa_bits)
MLG_CONST_INT(least_exponent)
MLG_CONST_FLOAT(largest)
MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(inverse_scale)

// f32 has 23 fraction bits: a sum with 1.5 * 2^(23 + e - bits) has none below 2^(e - bits).
__device__ inline float nearest_fp8(float value) {
  float size = fabsf(value);
  size = size > largest ? largest : size;
  int exponent = int(float_to_bits(size) >> 23) - 127;
  exponent = exponent < least_exponent ? least_exponent : (exponent > 16 ? 16 : exponent);
  const float large = bits_to_float((uint32_t(exponent - mantissa_bits + 23 + 127) << 23) | 0x400000u);
  const float rounded = (size + large) - large;
  return bits_to_float(float_to_bits(rounded) | (float_to_bits(value) & 0x80000000u));
}

MLG_KERNEL(round_fp8, mantissa_bits, least_exponent, largest, scale, inverse_scale)
template <typename T, int N>
__global__ void round_fp8(global<const T> x, global<T> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N];
  load<N>(x, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] = scale * nearest_fp8(inverse_scale * values[n]);
  store<N>(y, i, values);
}
