#include "plugins/communicators/gloo/sum.h"

#include <mulligan/dtype.hpp>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace mulligan::gloo_ranks {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements: the sums of one stay in the first cache

float value_of(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t bf16_bits(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto rounded = static_cast<std::uint16_t>((word + 0x7FFFu + ((word >> 16) & 1u)) >> 16);
  return value != value ? static_cast<std::uint16_t>((word >> 16) | 0x40u) : rounded;
}

template <typename Value>
void sum_values(std::span<const void* const> parts, void* to, std::int64_t count) {
  Value sums[kBlock];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t length = std::min(kBlock, count - start);
    const Value* first = static_cast<const Value*>(parts[0]) + start;
    std::copy(first, first + length, sums);
    for (const void* part : parts.subspan(1)) {
      const Value* values = static_cast<const Value*>(part) + start;
      for (std::int64_t i = 0; i < length; ++i) sums[i] += values[i];
    }
    std::copy(sums, sums + length, static_cast<Value*>(to) + start);
  }
}

void sum_bf16(std::span<const void* const> parts, void* to, std::int64_t count) {
  float sums[kBlock];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t length = std::min(kBlock, count - start);
    const auto* first = static_cast<const std::uint16_t*>(parts[0]) + start;
    for (std::int64_t i = 0; i < length; ++i) sums[i] = value_of(first[i]);
    for (const void* part : parts.subspan(1)) {
      const auto* values = static_cast<const std::uint16_t*>(part) + start;
      for (std::int64_t i = 0; i < length; ++i) sums[i] += value_of(values[i]);
    }
    auto* result = static_cast<std::uint16_t*>(to) + start;
    for (std::int64_t i = 0; i < length; ++i) result[i] = bf16_bits(sums[i]);
  }
}

}  // namespace

void sum_parts(std::int32_t dtype, std::span<const void* const> parts, void* to, std::int64_t count) {
  switch (dtype) {
    case MLG_F32:
      return sum_values<float>(parts, to, count);
    case MLG_F64:
      return sum_values<double>(parts, to, count);
    case MLG_BF16:
      return sum_bf16(parts, to, count);
    default:
      throw std::runtime_error(std::string("sums over ranks are of f32, f64 or bf16, not of ") +
                               sdk::dtype_name(dtype));
  }
}

}  // namespace mulligan::gloo_ranks
