#include "framework/core/philox.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace mulligan {
namespace {

// FNV-1a: purposes are a small set of fixed words; any well-mixed 64-bit hash serves.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

PhiloxStream::PhiloxStream(std::uint64_t seed, std::string_view purpose) : key_(seed, hash_of(purpose)) {}

std::array<std::int32_t, 4> PhiloxStream::key() const {
  return std::bit_cast<std::array<std::int32_t, 4>>(key_);
}

std::uint32_t PhiloxStream::bits(std::uint64_t index) const {
  return key_.block(index)[0];
}

double PhiloxStream::uniform(std::uint64_t index) const {
  const auto words = key_.block(index);
  const std::uint64_t word = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<double>(word >> 11) * 0x1.0p-53;
}

double PhiloxStream::normal(std::uint64_t index) const {
  const auto words = key_.block(index);
  // (0, 1]: the logarithm stays finite.
  const double radius_draw = (static_cast<double>(words[0]) + 1.0) * 0x1.0p-32;
  const double angle_draw = static_cast<double>(words[1]) * 0x1.0p-32;
  return std::sqrt(-2.0 * std::log(radius_draw)) * std::cos(2.0 * std::numbers::pi * angle_draw);
}

void PhiloxStream::fill_normal(std::span<float> out, double standard_deviation, std::uint64_t first) const {
  for (std::size_t index = 0; index < out.size(); ++index) {
    out[index] = static_cast<float>(standard_deviation * normal(first + index));
  }
}

}  // namespace mulligan
