// The windows of a text by their hashes, wherever they begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mulligan {

// visit(first, key) for each window of `width` units of the text whose key has none of the bits of `skip` and is not 0. Which
// windows these are is decided by what stands in them, so two texts agree on them wherever their parts stand.
template <typename Visit>
void each_hashed_window(std::span<const std::uint8_t> units, std::size_t width, std::uint64_t skip,
                        Visit&& visit) {
  constexpr std::uint64_t base = 0x9e3779b97f4a7c15;  // odd: a bijection modulo 2^64
  std::uint64_t oldest = 1, hash = 0;
  for (std::size_t i = 0; i < width; ++i) oldest *= base;
  for (std::size_t i = 0; i < units.size(); ++i) {
    hash = hash * base + units[i] + 1;
    if (i + 1 < width) continue;
    if (i >= width) hash -= oldest * (units[i - width] + std::uint64_t{1});
    std::uint64_t key = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
    key ^= key >> 32;
    if ((key & skip) == 0 && key != 0) visit(i + 1 - width, key);
  }
}

// Of much text every fourth or sixteenth window is compared: 32 of a passage are enough. The bits that its key must not have.
inline int skipped_bits(std::size_t units) {
  return units < (std::size_t{1} << 16) ? 0 : units < (std::size_t{1} << 21) ? 2 : 4;
}

}  // namespace mulligan
