#include "framework/data/python_random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_set>

namespace mulligan {

PythonRandom::PythonRandom(std::uint64_t seed) {
  state_[0] = 19650218u;
  for (std::uint32_t i = 1; i < kStateWords; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  const std::array<std::uint32_t, 2> digits{static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  const std::uint32_t digit_count = digits[1] != 0 ? 2 : 1;
  std::size_t i = 1;
  const auto advance = [&] {
    if (++i == kStateWords) {
      state_[0] = state_[kStateWords - 1];
      i = 1;
    }
  };
  const auto mixed = [&] { return state_[i - 1] ^ (state_[i - 1] >> 30); };
  for (std::uint32_t round = 0; round < kStateWords; ++round) {
    const std::uint32_t digit = round % digit_count;
    state_[i] = (state_[i] ^ (mixed() * 1664525u)) + digits[digit] + digit;
    advance();
  }
  for (std::size_t round = 1; round < kStateWords; ++round) {
    state_[i] = (state_[i] ^ (mixed() * 1566083941u)) - static_cast<std::uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000u;
}

std::uint32_t PythonRandom::next_word() {
  constexpr std::size_t kShift = 397;
  if (next_ == kStateWords) {
    for (std::size_t k = 0; k < kStateWords; ++k) {
      const std::uint32_t joined = (state_[k] & 0x80000000u) | (state_[(k + 1) % kStateWords] & 0x7fffffffu);
      state_[k] =
          state_[(k + kShift) % kStateWords] ^ (joined >> 1) ^ ((joined & 1u) != 0 ? 0x9908b0dfu : 0u);
    }
    next_ = 0;
  }
  std::uint32_t word = state_[next_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

std::uint32_t PythonRandom::below(std::uint32_t bound) {
  const int bits = std::bit_width(bound);
  while (true) {
    const std::uint32_t value = next_word() >> (32 - bits);
    if (value < bound) return value;
  }
}

std::vector<int> PythonRandom::sample(int population, int count) {
  // CPython shuffles a copy of the population when that is smaller than the set of chosen ones would be.
  double set_size = 21;
  if (count > 5) set_size += std::pow(4.0, std::ceil(std::log(count * 3.0) / std::log(4.0)));
  std::vector<int> result;
  if (population <= set_size) {
    std::vector<int> pool(static_cast<std::size_t>(population));
    std::iota(pool.begin(), pool.end(), 0);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t left = static_cast<std::uint32_t>(population - i);
      const std::uint32_t chosen = below(left);
      result.push_back(pool[chosen]);
      pool[chosen] = pool[left - 1];
    }
    return result;
  }
  std::unordered_set<std::uint32_t> seen;
  while (static_cast<int>(result.size()) < count) {
    const std::uint32_t chosen = below(static_cast<std::uint32_t>(population));
    if (seen.insert(chosen).second) result.push_back(static_cast<int>(chosen));
  }
  return result;
}

}  // namespace mulligan
