// UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace mulligan {

// Length of the well-formed UTF-8 sequence at the start of `text` (Unicode table 3-7), or 0.
std::size_t utf8_length(std::string_view text);

// Whether all of `text` is well-formed.
bool is_utf8(std::string_view text);

}  // namespace mulligan
