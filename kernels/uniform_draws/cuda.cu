// uniform_draws:  values[i] = bound (2 u_i - 1) in f64, rounded to f32, with u_i = (the upper 53 of 64 bits)
// / 2^53 of Philox4x32-10 at counter (i, purpose) under the key (seed); key: seed and purpose, low word
// first. The bound comes as three floats whose sum it is. Every step but the last multiplication and the
// rounding is exact, contracted or not, so the bits are those of the cpu backend.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>
#include <mulligan/cuda/philox.cuh>

MLG_KERNEL(uniform_draws)
__global__ void uniform_draws(global<const int> key, global<float> values, float bound_high,
                              float bound_middle, float bound_low, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const PhiloxBlock block = philox_block(key, (unsigned long long)(i));
  const unsigned long long bits = (unsigned long long)(block.word[1]) << 32 | block.word[0];
  const double uniform = double(bits >> 11) * (1.0 / 9007199254740992.0);
  const double bound = double(bound_high) + double(bound_middle) + double(bound_low);
  values[i] = float(bound * (2.0 * uniform - 1.0));
}
