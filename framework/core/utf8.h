// UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mulligan {

// Length of the well-formed UTF-8 sequence at the start of `text` (Unicode table 3-7), or 0 where
// there is none.
std::size_t utf8_length(std::string_view text);

// The code point of such a sequence of `length` bytes (utf8_length, above 0).
char32_t utf8_code_point(std::string_view text, std::size_t length);

// Whether all of `text` is well-formed.
bool is_utf8(std::string_view text);

// Utf8Stream: bytes that come in pieces, given on as whole characters.
class Utf8Stream {
 public:
  // The characters that are complete with these bytes; the bytes of an unfinished one are kept. What can be
  // part of no character becomes U+FFFD, one for each maximal part, as Unicode recommends.
  std::string take(std::string_view bytes);
  // U+FFFD where an unfinished character was kept.
  std::string finish();

 private:
  std::string kept_;
};

}  // namespace mulligan
