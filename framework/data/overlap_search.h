// Windows of one token stream that stand in another, which may be longer than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace mulligan {

// Tokens of a passage that two texts do not share by chance, but for phrases of the licence kind.
inline constexpr std::size_t overlap_window = 64;

// Windows are compared by 64-bit hashes.
class OverlapSearch {
 public:
  // Looks for the windows of `window` tokens of `pieces`, side by side in each. Throws std::invalid_argument
  // for a window of none.
  OverlapSearch(std::span<const std::vector<std::uint16_t>> pieces, std::size_t window);
  // Looks at every window of consecutive tokens of the other stream.
  void look_through(std::span<const std::uint16_t> tokens);
  // Share of the windows that were found, 0 to 1; 0 where there is none.
  double share() const;

 private:
  std::size_t window_;
  std::vector<std::uint64_t> windows_;                 // hashes
  std::unordered_set<std::uint64_t> missing_, found_;  // of these
};

// The passages of some tokens, to be looked for in documents one by one.
class SharedPassages {
 public:
  // All windows of `window` consecutive tokens of `tokens`, wherever they begin, as 64-bit hashes: 8 bytes
  // of memory for each. Throws std::invalid_argument for a window of none.
  explicit SharedPassages(std::span<const std::uint16_t> tokens, std::size_t window = overlap_window);
  // Whether one of them stands anywhere in `document`. May be called from several threads.
  bool any_in(std::span<const std::uint16_t> document) const;

 private:
  std::size_t window_;
  std::vector<std::uint64_t> hashes_;  // ascending, each once
};

}  // namespace mulligan
