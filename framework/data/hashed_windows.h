// The windows of a text by their hashes, wherever they begin.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mulligan {

inline std::uint64_t mixed_key(std::uint64_t hash) {
  const std::uint64_t key = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
  return key ^ (key >> 32);
}

constexpr std::uint64_t window_base = 0x9e3779b97f4a7c15;  // odd: a bijection modulo 2^64

// The key of the window that is all of these units.
inline std::uint64_t window_key(std::span<const std::uint8_t> units) {
  std::uint64_t hash = 0;
  for (const std::uint8_t unit : units) hash = hash * window_base + unit + 1;
  return mixed_key(hash);
}

// visit(first, key) for each window of `width` units of the text whose key has none of the bits of `skip` and is not 0. Which
// windows these are is decided by what stands in them, so two texts agree on them wherever their parts stand.
template <typename Visit>
void each_hashed_window(std::span<const std::uint8_t> units, std::size_t width, std::uint64_t skip,
                        Visit&& visit) {
  std::uint64_t oldest = 1, hash = 0;
  for (std::size_t i = 0; i < width; ++i) oldest *= window_base;
  for (std::size_t i = 0; i < units.size(); ++i) {
    hash = hash * window_base + units[i] + 1;
    if (i + 1 < width) continue;
    if (i >= width) hash -= oldest * (units[i - width] + std::uint64_t{1});
    const std::uint64_t key = mixed_key(hash);
    if ((key & skip) == 0 && key != 0) visit(i + 1 - width, key);
  }
}

// Keys of windows, each with a place that others keep what they know of it at.
class WindowKeys {
 public:
  static constexpr std::size_t none = ~std::size_t{0};
  explicit WindowKeys(std::size_t most = 0)
      : keys_(std::bit_ceil(std::max<std::size_t>(most, 32) * 2)), sieve_(keys_.size() / 4) {}
  std::size_t size() const { return keys_.size(); }  // places
  std::size_t add(std::uint64_t key) {
    sieve_[key / 64 & (sieve_.size() - 1)] |= std::uint64_t{1} << key % 64;
    const std::size_t place = place_of(key);
    keys_[place] = key;
    return place;
  }
  // none: it is not there, which a bit says of most.
  std::size_t find(std::uint64_t key) const {
    if ((sieve_[key / 64 & (sieve_.size() - 1)] >> key % 64 & 1) == 0) return none;
    const std::size_t place = place_of(key);
    return keys_[place] == key ? place : none;
  }

 private:
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t last = keys_.size() - 1;  // a power of two, less one
    std::size_t at = key & last;
    while (keys_[at] != key && keys_[at] != 0) at = (at + 1) & last;
    return at;
  }

  std::vector<std::uint64_t> keys_;  // open addressing; 0: empty
  std::vector<std::uint64_t> sieve_;
};

// The one in the middle of their order, which is lost; 1 of none.
inline std::uint32_t median(std::vector<std::uint32_t>& counts) {
  if (counts.empty()) return 1;
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle);
  return *middle;
}

// Of much text every fourth or sixteenth window is compared: 32 of a passage are enough. The bits that its key must not have.
inline int skipped_bits(std::size_t units) {
  return units < (std::size_t{1} << 16) ? 0 : units < (std::size_t{1} << 21) ? 2 : 4;
}

}  // namespace mulligan
