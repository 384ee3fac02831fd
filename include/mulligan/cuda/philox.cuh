// Philox4x32-10 for kernels: the numbers of philox.hpp, bit for bit.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

struct PhiloxBlock {
  uint32_t word[4];
};

__device__ inline uint32_t high_word(unsigned long long value) {
  return uint32_t(value >> 32);
}

// The words of number `index` of the stream of a seed (k1, k0) and a purpose (p1, p0), high words first.
__device__ inline PhiloxBlock philox_block(uint32_t k0, uint32_t k1, uint32_t p0, uint32_t p1,
                                           unsigned long long index) {
  PhiloxBlock c = {{uint32_t(index), high_word(index), p0, p1}};
  MLG_UNROLL
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * c.word[0], b = 0xCD9E8D57ull * c.word[2];
    c = {{high_word(b) ^ c.word[1] ^ k0, uint32_t(b), high_word(a) ^ c.word[3] ^ k1, uint32_t(a)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// The same of the stream that `key` names: seed and purpose, low word first.
__device__ inline PhiloxBlock philox_block(global<const int> key, unsigned long long index) {
  return philox_block(uint32_t(key[0]), uint32_t(key[1]), uint32_t(key[2]), uint32_t(key[3]), index);
}

__device__ inline bool is_finite_bits(uint32_t word) {
  return (word & 0x7F800000u) != 0x7F800000u;
}

// A bf16 next to `value`, the upper one with the probability of the part that is cut off: by the lower 16 of
// `random_bits`. What is not finite stays.
__device__ inline float stochastic_bf16(float value, uint32_t random_bits) {
  const uint32_t word = float_to_bits(value);
  return is_finite_bits(word) ? bits_to_float((word + (random_bits & 0xFFFFu)) & 0xFFFF0000u) : value;
}

}  // namespace
