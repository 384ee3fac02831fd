#include "framework/core/utf8.h"

namespace mulligan {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// The sequence at the start of `bytes`: its length, whether it is a character, and whether more bytes could
// make it one. (Table 3-7 of the Unicode standard.)
struct Sequence {
  std::size_t length;
  bool whole, open;
};
Sequence sequence_at(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true, false};
  const std::size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return {1, false, false};
  unsigned lowest = 0x80, highest = 0xBF;  // of the second byte
  if (first == 0xE0) lowest = 0xA0;
  if (first == 0xED) highest = 0x9F;
  if (first == 0xF0) lowest = 0x90;
  if (first == 0xF4) highest = 0x8F;
  std::size_t length = 1;
  for (; length < wanted; ++length, lowest = 0x80, highest = 0xBF) {
    if (length == bytes.size()) return {length, false, true};
    if (byte(length) < lowest || byte(length) > highest) return {length, false, false};
  }
  return {length, true, false};
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const Sequence sequence = sequence_at(text);
  return sequence.whole ? sequence.length : 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

char32_t utf8_code_point(std::string_view text, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  if (length == 1) return byte(0);
  char32_t code = byte(0) & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3Fu);
  return code;
}

std::string Utf8Stream::take(std::string_view bytes) {
  kept_ += bytes;
  std::string text;
  std::string_view rest = kept_;
  while (!rest.empty()) {
    const Sequence sequence = sequence_at(rest);
    if (sequence.open) break;
    text += sequence.whole ? rest.substr(0, sequence.length) : replacement;
    rest.remove_prefix(sequence.length);
  }
  kept_ = std::string(rest);
  return text;
}

std::string Utf8Stream::finish() {
  const bool open = !kept_.empty();
  kept_.clear();
  return open ? std::string(replacement) : std::string();
}

}  // namespace mulligan
