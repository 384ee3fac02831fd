#include "framework/artifact/byte_layout.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mulligan {
namespace {

constexpr std::string_view mark = "BSHF";

}  // namespace

std::string shuffle_bytes(std::string_view bytes, int stride) {
  const auto step = static_cast<std::size_t>(stride);
  if (bytes.size() < step) return std::string(bytes);
  std::string out(mark);
  out.reserve(bytes.size() + mark.size() + 1);
  out += static_cast<char>(stride);
  for (std::size_t phase = 0; phase < step; ++phase) {
    for (std::size_t i = phase; i < bytes.size(); i += step) out += bytes[i];
  }
  return out;
}

std::string unshuffle_bytes(std::string_view shuffled, int stride) {
  const auto step = static_cast<std::size_t>(stride);
  if (shuffled.size() < step) return std::string(shuffled);
  if (!shuffled.starts_with(mark) || shuffled.size() < mark.size() + 1 + step ||
      static_cast<unsigned char>(shuffled[mark.size()]) != step) {
    throw std::runtime_error(fmt::format("has no byte-shuffle mark of stride {}", stride));
  }
  shuffled.remove_prefix(mark.size() + 1);
  std::string out(shuffled.size(), '\0');
  std::size_t next = 0;
  for (std::size_t phase = 0; phase < step; ++phase) {
    for (std::size_t i = phase; i < out.size(); i += step) out[i] = shuffled[next++];
  }
  return out;
}

std::string pack_integers(std::span<const std::int8_t> codes, int bits) {
  std::string out;
  out.reserve(static_cast<std::size_t>(packed_bytes(codes.size(), bits)));
  const unsigned mask = (1U << bits) - 1U;
  unsigned pending = 0;
  int filled = 0;
  for (const std::int8_t code : codes) {
    pending |= (static_cast<unsigned>(code) & mask) << filled;
    filled += bits;
    for (; filled >= 8; filled -= 8) {
      out += static_cast<char>(pending & 0xFFU);
      pending >>= 8;
    }
  }
  if (filled > 0) out += static_cast<char>(pending & 0xFFU);
  return out;
}

std::uint64_t packed_bytes(std::uint64_t count, int bits) {
  const auto width = static_cast<std::uint64_t>(bits);
  return count / 8 * width + (count % 8 * width + 7) / 8;
}

std::vector<std::int8_t> unpack_integers(std::string_view packed, std::uint64_t count, int bits) {
  if (packed.size() != packed_bytes(count, bits)) {
    throw std::runtime_error(fmt::format("has {} bytes where {} integers of {} bits take {}", packed.size(),
                                         count, bits, packed_bytes(count, bits)));
  }
  std::vector<std::int8_t> codes;
  codes.reserve(count);
  const unsigned mask = (1U << bits) - 1U;
  const unsigned sign = 1U << (bits - 1);
  unsigned pending = 0;
  int filled = 0;
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (filled < bits) {
      pending |= static_cast<unsigned>(static_cast<unsigned char>(packed[next++])) << filled;
      filled += 8;
    }
    const unsigned value = pending & mask;
    codes.push_back(static_cast<std::int8_t>(static_cast<int>(value ^ sign) - static_cast<int>(sign)));
    pending >>= bits;
    filled -= bits;
  }
  return codes;
}

}  // namespace mulligan
