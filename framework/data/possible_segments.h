// The segments that packed rows can have, for a backend that makes something for each kind of them and takes
// long about it: shown to it before the training clock starts, so that no row makes it wait later.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace mulligan {

// Calls `show` with boundaries (from 0 to row_tokens, rising) of rows of row_tokens tokens whose segments have
// up to longest_segment tokens: with the fewest segments and about one eighth more from row to row, up to one
// segment per token; and where each number of segments allows it the longest one at its limit, half of it, a
// quarter, and so on.
void show_possible_segments(std::int64_t row_tokens, std::int64_t longest_segment,
                            const std::function<void(std::span<const std::int32_t>)>& show);

}  // namespace mulligan
