// Rounds a double to fp16 once. A conversion through float rounds twice, which can break ties in the wrong direction.
#pragma once

#include <cmath>
#include <mulligan/half.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Returns the nearest fp16 bits, ties to even. The first rounding makes the last bit of an inexact float odd ("round to odd",
// Boldo and Melquiond, IEEE Transactions on Computers 2008). Then the second rounding is correct.
inline std::uint16_t half_bits(double value) {
  auto narrow = static_cast<float>(value);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != value) {
    auto bits = std::bit_cast<std::uint32_t>(narrow);
    if (std::fabs(static_cast<double>(narrow)) > std::fabs(value)) --bits;  // towards zero
    narrow = std::bit_cast<float>(bits | 1U);
  }
  return half_bits(narrow);
}

inline float round_to_half(double value) {
  return half_value(half_bits(value));
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
