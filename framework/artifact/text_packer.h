// Compression of source text, which text_coder.h decompresses.
#pragma once

#include <string>
#include <string_view>

#include "framework/artifact/text_coder.h"

namespace mulligan {

// Four bytes of length, lowest first, then the bits by an arithmetic coder.
inline std::string pack_text(std::string_view text) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(text.size() >> 8 * i);
  TextModel model(text.size());
  std::uint32_t low = 0, high = ~0u;
  for (const char c : text) {
    for (int i = 7; i >= 0; --i) {
      const int bit = c >> i & 1;
      const auto middle =
          static_cast<std::uint32_t>(low + (std::uint64_t{high - low} * model.predict() >> 16));
      (bit ? high : low) = middle + !bit;
      model.update(bit);
      for (; (low ^ high) >> 24 == 0; low <<= 8, high = high << 8 | 255) out += static_cast<char>(high >> 24);
    }
  }
  for (int i = 0; i < 4; ++i, low <<= 8) out += static_cast<char>(low >> 24);
  return out;
}

}  // namespace mulligan
