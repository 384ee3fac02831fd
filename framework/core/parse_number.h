// parse_number: a text as one number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace mulligan {

// The number that `text` is from its beginning to its end.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace mulligan
