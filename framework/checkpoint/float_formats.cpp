#include "framework/checkpoint/float_formats.h"

#include <mulligan/kernel.hpp>

#include <cstring>
#include <stdexcept>

namespace mulligan {

bool is_weight_format(StoredType type) {
  return type == StoredType::f32 || type == StoredType::bf16 || type == StoredType::f16;
}

float decode_bf16(std::uint16_t bits) {
  return std::bit_cast<sdk::bfloat16>(bits);
}
std::uint16_t encode_bf16(float value) {
  return sdk::bfloat16(value).bits;
}
float decode_f16(std::uint16_t bits) {
  return sdk::half_value(bits);
}
std::uint16_t encode_f16(float value) {
  return sdk::half_bits(value);
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
