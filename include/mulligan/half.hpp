// fp16 (IEEE 754 binary16) as stored bits, without compiler support for the type.
#pragma once

#include <bit>
#include <cstdint>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Nearest fp16, ties to even; beyond 65504 (rounded) infinity; NaN stays NaN.
inline std::uint16_t half_bits(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000u);
  const std::uint32_t magnitude = word & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {
    // Below 2^-14 fp16 counts in units of 2^-24; adding 0.5 leaves just these in a float's mantissa, rounded.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u);
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

// The value of fp16 bits, exact.
inline float half_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// The value rounded to fp16.
inline float round_to_half(float value) {
  return half_value(half_bits(value));
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
