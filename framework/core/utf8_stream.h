// Utf8Stream: bytes that come in pieces, given on as whole characters.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

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
