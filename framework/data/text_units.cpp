#include "framework/data/text_units.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "framework/data/shard.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

constexpr std::size_t stride = 16;  // more than most pieces
constexpr std::uint32_t no_character = 0xFFFFFFFF;

// The character of two or three bytes at `at`, which moves after it; no_character where there is none.
std::uint32_t character_at(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = (byte(at) & 0xE0) == 0xC0 ? 2 : (byte(at) & 0xF0) == 0xE0 ? 3 : 0;
  if (length == 0 || at + length > text.size()) return no_character;
  std::uint32_t character = byte(at) & (length == 2 ? 0x1FU : 0x0FU);
  for (std::size_t i = 1; i < length; ++i) character = character << 6 | (byte(at + i) & 0x3FU);
  at += length;
  return character;
}

// Capitals of Latin-1, Greek and Cyrillic become small letters.
std::uint32_t small_letter(std::uint32_t c) {
  const bool shifted =
      (c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F);
  if (shifted) return c + 0x20;
  return c >= 0x400 && c <= 0x40F ? c + 0x50 : c;
}

// The symbols of text transforms lie at the start of the private use area.
bool is_mark(std::uint32_t c) {
  return c == 0x2581 || (c >= 0xE000 && c < 0xE040);
}

// Of characters beyond ASCII the bytes after the first: it says little more than the script.
void append_units(std::string_view piece, std::vector<std::uint8_t>& units) {
  for (std::size_t at = 0; at < piece.size();) {
    const auto byte = static_cast<unsigned char>(piece[at]);
    const std::uint32_t character = character_at(piece, at);
    if (character != no_character) {
      if (is_mark(character)) continue;
      const std::uint32_t c = small_letter(character);
      if (c >= 0x800) units.push_back(static_cast<std::uint8_t>(0x80 | (c >> 6 & 0x3F)));
      units.push_back(static_cast<std::uint8_t>(0x80 | (c & 0x3F)));
      continue;
    }
    ++at;
    const bool capital = byte >= 'A' && byte <= 'Z';
    const bool letter = capital || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
    const bool continues = byte >= 0x80 && byte < 0xC0;
    if (letter || continues) units.push_back(static_cast<std::uint8_t>(capital ? byte + 0x20 : byte));
  }
}

}  // namespace

TextUnits::TextUnits(const Tokenizer* tokenizer) {
  const int known = tokenizer ? tokenizer->vocab_size() : kMaxVocabulary;
  for (int id = 0; id < kMaxVocabulary; ++id) {
    begin_.push_back(static_cast<std::uint32_t>(spelled_.size()));
    if (!tokenizer) {
      spelled_.push_back(static_cast<std::uint8_t>(id >> 8));
      spelled_.push_back(static_cast<std::uint8_t>(id & 0xFF));
    } else if (id < known && tokenizer->is_byte(id)) {
      const std::uint16_t one[] = {static_cast<std::uint16_t>(id)};
      append_units(tokenizer->document_text(one), spelled_);
    } else if (id < known && !tokenizer->is_textless(id)) {
      append_units(tokenizer->piece(id), spelled_);
    }
  }
  begin_.push_back(static_cast<std::uint32_t>(spelled_.size()));
  spelled_.resize(spelled_.size() + stride);
}

void TextUnits::append(std::span<const std::uint16_t> tokens, std::vector<std::uint8_t>& units) const {
  std::size_t at = units.size(), count = at;
  for (const std::uint16_t token : tokens) count += begin_[token + 1U] - begin_[token];
  units.resize(count +
               stride);  // a copy of fixed length is faster, and what it writes too much is overwritten
  for (const std::uint16_t token : tokens) {
    const std::uint32_t begin = begin_[token], length = begin_[token + 1U] - begin;
    std::memcpy(&units[at], &spelled_[begin], std::max<std::size_t>(length, stride));
    at += length;
  }
  units.resize(count);
}

}  // namespace mulligan
