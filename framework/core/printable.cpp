#include "framework/core/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace mulligan {
namespace {

// U+0080 to U+009F are the control characters of eight bits, in UTF-8 after this byte.
constexpr unsigned char eight_bit_lead = 0xc2;

bool is_control(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte == '\t') return false;
  if (byte < 0x20 || byte == 0x7f) return true;
  return byte >= 0x80 && byte < 0xa0 && at > 0 && static_cast<unsigned char>(text[at - 1]) == eight_bit_lead;
}

}  // namespace

std::string printable(std::string_view text, LineBreaks breaks) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (!is_control(text, at) || (byte == '\n' && breaks == LineBreaks::kept)) {
      shown += byte;
    } else if (byte == '\n') {
      shown += "\\n";
    } else {
      // The lead byte of an eight-bit control character is part of it.
      if (static_cast<unsigned char>(byte) >= 0x80) shown.pop_back();
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return shown;
}

std::string without_full_stop(std::string sentence) {
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > first; place -= 3) {
    digits.insert(static_cast<std::size_t>(place), ",");
  }
  return digits;
}

}  // namespace mulligan
