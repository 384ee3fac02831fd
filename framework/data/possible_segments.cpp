#include "framework/data/possible_segments.h"

#include <algorithm>
#include <vector>

namespace mulligan {

void show_possible_segments(std::int64_t row_tokens, std::int64_t longest_segment,
                            const std::function<void(std::span<const std::int32_t>)>& show) {
  longest_segment = std::min(longest_segment, row_tokens);
  std::vector<std::int32_t> boundaries;
  for (std::int64_t longest = longest_segment; longest > 0; longest /= 2) {
    std::int64_t count = (row_tokens + longest - 1) / longest;
    while (true) {
      boundaries.assign(1, 0);
      // The longest first; the others share what is left, at least one token each.
      const std::int64_t first = std::min(longest, row_tokens - (count - 1)), rest = row_tokens - first;
      for (std::int64_t other = 0; other < count; ++other) {
        const std::int64_t end = count == 1 ? row_tokens : first + rest * other / (count - 1);
        boundaries.push_back(static_cast<std::int32_t>(end));
      }
      show(boundaries);
      if (count == row_tokens) break;
      count = std::min(row_tokens, count + std::max<std::int64_t>(1, count / 8));
    }
  }
}

}  // namespace mulligan
