// Passages that documents take over from others word for word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mulligan {

// Tokens of a passage that two texts do not share by chance, but for phrases of the licence kind.
inline constexpr std::size_t overlap_window = 64;

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
