// Windows of one token stream that stand in another, which may be longer than memory.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace mulligan {

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

}  // namespace mulligan
