#include "framework/data/exact_encoding.h"

#include <cstring>

#include "framework/core/utf8.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

bool MessageFields::next() {
  if (rest_.empty() || broken_) return false;
  const std::optional<std::uint64_t> key = integer();
  number = key.value_or(0) >> 3;
  bytes = {};
  std::optional<std::uint64_t> read;
  switch (key ? *key & 7u : 7u) {
    case 0:
      read = integer();
      value = read.value_or(0);
      broken_ = !read;
      break;
    case 1:
      broken_ = !take(8);
      break;
    case 2:
      read = integer();
      broken_ = !read || !take(*read);
      break;
    case 5:
      broken_ = !take(4);
      break;
    default:
      broken_ = true;
  }
  return !broken_;
}

std::optional<std::uint64_t> MessageFields::integer() {
  std::uint64_t read = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    read |= static_cast<std::uint64_t>(byte & 0x7Fu) << shift;
    if (byte < 0x80) return read;
  }
  return std::nullopt;
}

bool MessageFields::take(std::uint64_t length) {
  if (length > rest_.size()) return false;
  bytes = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

namespace {

// A unit of the map's double-array trie (the format of the Darts-clone library), 32 bits, little-endian.
struct Unit {
  std::uint32_t bits;
  bool is_value() const { return bits >> 31 != 0; }
  bool has_value() const { return (bits >> 8 & 1u) != 0; }
  std::uint32_t value() const { return bits & 0x7fffffffu; }
  std::uint32_t offset() const { return (bits >> 10) << ((bits & 1u << 9) >> 6); }
};

// The map is the trie's length in bytes (32 bits), the trie, and the texts that its values point into, each
// ended by a zero byte.
bool is_sound(std::string_view map) {
  std::uint32_t trie_bytes = 0;
  if (map.size() < sizeof(trie_bytes)) return false;
  std::memcpy(&trie_bytes, map.data(), sizeof(trie_bytes));
  map.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes >= map.size() || trie_bytes == 0 || trie_bytes % sizeof(Unit) != 0) return false;
  const std::string_view texts = map.substr(trie_bytes);
  if (texts.back() != '\0') return false;
  const std::size_t count = trie_bytes / sizeof(Unit);
  const auto unit = [&](std::size_t place) {
    Unit read;
    std::memcpy(&read, map.data() + place * sizeof(Unit), sizeof(Unit));
    return read;
  };
  for (std::size_t place = 0; place < count; ++place) {
    const Unit here = unit(place);
    if (here.is_value()) {
      if (here.value() >= texts.size()) return false;
      continue;
    }
    // From here the next byte of a text leads to one of 256 places.
    const std::size_t next = place ^ here.offset();
    if ((next | 0xFFu) >= count) return false;
    if (here.has_value() && unit(next).value() >= texts.size()) return false;
  }
  return true;
}

}  // namespace

std::string character_map_problem(std::string_view model) {
  constexpr std::uint64_t kNormalizerSpec = 3, kDenormalizerSpec = 5, kCharacterMap = 2;
  MessageFields part(model);
  while (part.next()) {
    if (part.number != kNormalizerSpec && part.number != kDenormalizerSpec) continue;
    MessageFields field(part.bytes);
    while (field.next()) {
      if (field.number == kCharacterMap && !field.bytes.empty() && !is_sound(field.bytes))
        return "its character map points beyond its end";
    }
    if (!field.ended()) return "its normaliser cannot be read";
  }
  // What stands after a field that is not understood would not be checked.
  return part.ended() ? "" : "it is cut off or not one";
}

namespace {

// One character of a text as the pieces know it, or nothing for a byte that is written as a byte.
struct Character {
  char32_t code = 0;
  std::size_t length = 1;
  bool as_byte = false;
};

Character first_symbol(std::string_view text) {
  const std::size_t length = utf8_length(text);
  if (length == 0) return {0, 1, true};
  if (text.front() == '\0' || text.starts_with(kSpaceMark)) return {0, length, true};
  return {utf8_code_point(text, length), length, false};
}

constexpr char32_t kMark = 0x2581;

std::uint64_t pair_of(char32_t left, char32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | right;
}

}  // namespace

ModelRules model_rules(std::string_view model) {
  constexpr std::uint64_t kTrainerSpec = 2, kNormalizerSpec = 3;              // of the model
  constexpr std::uint64_t kModelType = 3, kSpaceAsSuffix = 24, kBpe = 2;      // of the trainer's settings
  constexpr std::uint64_t kCharacterMap = 2, kDummyPrefix = 3, kTrimmed = 4;  // of the normaliser's
  constexpr std::uint64_t kEscaped = 5;
  bool changes = false, dummy_prefix = true, trimmed = true, escaped = true, suffix = false;
  ModelRules rules;
  for (MessageFields field(model); field.next();) {
    if (field.number == kTrainerSpec) {
      for (MessageFields trainer(field.bytes); trainer.next();) {
        if (trainer.number == kModelType) rules.pair_merges = trainer.value == kBpe;
        if (trainer.number == kSpaceAsSuffix) suffix = trainer.value != 0;
      }
    } else if (field.number == kNormalizerSpec) {
      for (MessageFields normalizer(field.bytes); normalizer.next();) {
        if (normalizer.number == kCharacterMap) changes = !normalizer.bytes.empty();
        if (normalizer.number == kDummyPrefix) dummy_prefix = normalizer.value != 0;
        if (normalizer.number == kTrimmed) trimmed = normalizer.value != 0;
        if (normalizer.number == kEscaped) escaped = normalizer.value != 0;
      }
    }
  }
  rules.keeps_text = !changes && !dummy_prefix && !trimmed && escaped && !suffix;
  return rules;
}

TextStretch first_stretch(std::string_view text, bool at_start) {
  if (at_start && text.front() == ' ') return {text.substr(0, 1), true};
  const bool as_bytes = first_symbol(text).as_byte;
  std::size_t length = 0;
  while (length < text.size()) {
    const Character next = first_symbol(text.substr(length));
    if (next.as_byte != as_bytes) break;
    length += next.length;
  }
  return {text.substr(0, length), as_bytes};
}

void SafeCuts::add_piece(std::string_view piece) {
  char32_t previous = 0;
  for (std::size_t i = 0; i < piece.size();) {
    const std::size_t length = utf8_length(piece.substr(i));
    if (length == 0) return;
    const char32_t code = utf8_code_point(piece.substr(i), length);
    if (i > 0) pairs_.insert(pair_of(previous, code));
    previous = code;
    i += length;
  }
}

std::size_t SafeCuts::at_or_after(std::string_view text, std::size_t position) const {
  if (pairs_.empty() || position >= text.size()) return text.size();
  // From the character that `position` falls into or ends.
  std::size_t i = position == 0 ? 0 : position - 1;
  for (int back = 0; back < 3 && i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u; ++back) --i;
  for (Character left = first_symbol(text.substr(i)); i + left.length < text.size();) {
    i += left.length;
    const Character right = first_symbol(text.substr(i));
    const auto known = [](const Character& c) { return c.code == U' ' ? kMark : c.code; };
    const bool safe = left.as_byte || right.as_byte || !pairs_.contains(pair_of(known(left), known(right)));
    if (safe && i >= position && i > 0) return i;
    left = right;
  }
  return text.size();
}

}  // namespace mulligan
