#include "tools/prepare/overlap_search.h"

#include <algorithm>
#include <stdexcept>

namespace mulligan {
namespace {

// The polynomial hash of a window, rolled along a stream.
class RollingHash {
 public:
  explicit RollingHash(std::size_t window) : window_(window) {
    for (std::size_t i = 0; i < window; ++i) oldest_ *= base;
  }
  // visit(first, hash) of each window of the piece.
  template <typename Visit>
  void each(std::span<const std::uint16_t> tokens, Visit&& visit) const {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      hash = hash * base + tokens[i] + 1;
      if (i >= window_) hash -= oldest_ * (tokens[i - window_] + std::uint64_t{1});
      if (i + 1 >= window_) visit(i + 1 - window_, hash);
    }
  }

 private:
  static constexpr std::uint64_t base = 0x9e3779b97f4a7c15;  // odd: a bijection modulo 2^64
  std::size_t window_;
  std::uint64_t oldest_ = 1;  // base^window
};

}  // namespace

SharedPassages::SharedPassages(std::span<const std::uint16_t> tokens, std::size_t window) : window_(window) {
  if (window == 0) throw std::invalid_argument("a window of one token or more");
  if (tokens.size() >= window) hashes_.reserve(tokens.size() + 1 - window);
  RollingHash(window).each(tokens, [&](std::size_t, std::uint64_t hash) { hashes_.push_back(hash); });
  std::ranges::sort(hashes_);
  hashes_.erase(std::ranges::unique(hashes_).begin(), hashes_.end());
}

bool SharedPassages::any_in(std::span<const std::uint16_t> document) const {
  bool found = false;
  RollingHash(window_).each(document, [&](std::size_t, std::uint64_t hash) {
    found = found || std::ranges::binary_search(hashes_, hash);
  });
  return found;
}

}  // namespace mulligan
