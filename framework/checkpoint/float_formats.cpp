#include "framework/checkpoint/float_formats.h"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace mulligan {

bool is_weight_format(StoredType type) {
  return type == StoredType::f32 || type == StoredType::bf16 || type == StoredType::f16;
}

float decode_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t encode_bf16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // quiet NaN
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(bits >> 16);
}

float decode_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // Subnormal: mantissa * 2^-24, made normal.
  std::uint32_t shifted_exponent = 113;
  while ((mantissa & 0x400u) == 0) {
    mantissa <<= 1;
    --shifted_exponent;
  }
  return std::bit_cast<float>(sign | (shifted_exponent << 23) | ((mantissa & 0x3ffu) << 13));
}

std::uint16_t encode_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 2^16 or more
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent < -25) return sign;
  // The significand with its leading one, and how many of its low bits the half does not keep.
  const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const int dropped = exponent >= -14 ? 13 : -exponent - 1;
  std::uint32_t kept = significand >> dropped;
  const std::uint32_t rest = significand & ((1u << dropped) - 1), tie = 1u << (dropped - 1);
  if (rest > tie || (rest == tie && (kept & 1u))) ++kept;
  // A carry out of the significand increments the exponent, as it should.
  const std::uint32_t half =
      exponent >= -14 ? kept + (static_cast<std::uint32_t>(exponent + 14) << 10) : kept;
  return static_cast<std::uint16_t>(sign | half);
}

std::vector<float> decode_weights(std::span<const std::byte> bytes, StoredType type) {
  if (!is_weight_format(type)) throw std::logic_error("decode_weights: not a weight format");
  std::vector<float> values(bytes.size() / stored_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == StoredType::f32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      values[i] = type == StoredType::f16 ? decode_f16(bits) : decode_bf16(bits);
    }
  }
  return values;
}

std::vector<std::byte> encode_weights(std::span<const float> values, StoredType type) {
  if (!is_weight_format(type)) throw std::logic_error("encode_weights: not a weight format");
  std::vector<std::byte> bytes(values.size() * stored_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == StoredType::f32) {
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    } else {
      const std::uint16_t bits = type == StoredType::f16 ? encode_f16(values[i]) : encode_bf16(values[i]);
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
  }
  return bytes;
}

}  // namespace mulligan
