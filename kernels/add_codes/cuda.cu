// add_codes:  values[i] = f32(fma(step, q_i - zero, values[i])) in f64, with grid = {step, zero} and q_i the
// code of `bits` bits that begins at bit i * bits of `codes`, least significant bits first. A code's second
// byte is read only if the code reaches into it, so no read goes past the last byte.
//
// Determinism: elements are independent, and one fused operation leaves nothing to contract, so the bits are
// those of the cpu backend.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(bits)

MLG_KERNEL(add_codes, bits)
__global__ void add_codes(global<const unsigned char> codes, global<const double> grid, global<float> values,
                          long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const long long bit = i * bits, byte = bit >> 3;
  const int shift = int(bit & 7);
  unsigned word = codes[byte];
  if (shift + bits > 8) word |= unsigned(codes[byte + 1]) << 8;
  const double code = double(word >> shift & ((1u << bits) - 1u));
  values[i] = float(fma(double(grid[0]), code - double(grid[1]), double(values[i])));
}
