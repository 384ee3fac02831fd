// uniform_draws:  values[i] = bound (2 u_i - 1) in f64, rounded to f32, with u_i = (the upper 53 of 64 bits)
// / 2^53 of Philox4x32-10 at counter (i, purpose) under the key (seed); key: seed and purpose, low word
// first. The bound comes as three floats whose sum it is. Every step but the last product and the rounding is
// exact, contracted or not, so the bits are those of the cpu backend.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

__device__ inline uint32_t high_word(unsigned long long value) {
  return uint32_t(value >> 32);
}

MLG_KERNEL(uniform_draws)
__global__ void uniform_draws(global<const int> key, global<float> values, float bound_high,
                              float bound_middle, float bound_low, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  uint32_t k0 = uint32_t(key[0]), k1 = uint32_t(key[1]);
  uint32_t c0 = uint32_t(i), c1 = high_word(i), c2 = uint32_t(key[2]), c3 = uint32_t(key[3]);
  MLG_UNROLL
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
    c0 = high_word(b) ^ c1 ^ k0;
    c2 = high_word(a) ^ c3 ^ k1;
    c1 = uint32_t(b);
    c3 = uint32_t(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const unsigned long long bits = (unsigned long long)(c1) << 32 | c0;
  const double uniform = double(bits >> 11) * (1.0 / 9007199254740992.0);
  const double bound = double(bound_high) + double(bound_middle) + double(bound_low);
  values[i] = float(bound * (2.0 * uniform - 1.0));
}
