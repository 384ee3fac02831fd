// fp16 of a double in one rounding. By way of a float there would be two, the second with wrong ties.
#pragma once

#include <cmath>
#include <mulligan/half.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Nearest fp16 bits, ties to even. Rounding to a float whose last digit is odd unless it is exact ("round to
// odd", Boldo and Melquiond, IEEE Transactions on Computers 2008) leaves the second rounding the right one.
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
