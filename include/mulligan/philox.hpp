// Random numbers for kernels of the cpu backend: Philox4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). Every number is a pure function of key and counter, so results depend neither on order nor on
// threads. The device side is cuda/philox.cuh.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// The ten-round bijection of counters.
inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                               std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return c;
}

// Rounds `value` stochastically to a neighbouring bf16, by the lower 16 of `random_bits`. The probability of the upper one is
// the part that is cut off, so the mean stays. Infinities and NaN stay.
inline float stochastic_bf16(float value, std::uint32_t random_bits) {
  if (!std::isfinite(value)) return value;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + (random_bits & 0xFFFFu)) & 0xFFFF0000u);
}

// One stream of a seed and a purpose, 64 bits each, with the low word first in `words`.
struct PhiloxKey {
  std::uint32_t words[4];
  PhiloxKey(std::uint64_t seed, std::uint64_t purpose)
      : words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
              static_cast<std::uint32_t>(purpose), static_cast<std::uint32_t>(purpose >> 32)} {}
  explicit PhiloxKey(const std::int32_t* from) {
    for (int i = 0; i < 4; ++i) words[i] = static_cast<std::uint32_t>(from[i]);
  }
  // The four words of number `index`.
  std::array<std::uint32_t, 4> block(std::uint64_t index) const {
    return philox4x32(
        {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), words[2], words[3]},
        {words[0], words[1]});
  }
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
