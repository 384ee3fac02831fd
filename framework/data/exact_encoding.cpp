#include "framework/data/exact_encoding.h"

#include "framework/core/utf8.h"
#include "framework/data/message_fields.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

// One character of a text as the pieces know it, or nothing for a byte that is written as a byte.
struct Character {
  char32_t code = 0;
  std::size_t length = 1;
  bool as_byte = false;
};

Character first_character(std::string_view text) {
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
  const bool as_bytes = first_character(text).as_byte;
  std::size_t length = 0;
  while (length < text.size()) {
    const Character next = first_character(text.substr(length));
    if (next.as_byte != as_bytes) break;
    length += next.length;
  }
  return {text.substr(0, length), as_bytes};
}

void SafeCuts::add_piece(std::string_view piece) {
  known_ = true;
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
  if (!known_ || position >= text.size()) return text.size();
  // From the character that `position` falls into or ends.
  std::size_t i = position == 0 ? 0 : position - 1;
  for (int back = 0; back < 3 && i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u; ++back) --i;
  for (Character left = first_character(text.substr(i)); i + left.length < text.size();) {
    i += left.length;
    const Character right = first_character(text.substr(i));
    const auto known = [](const Character& c) { return c.code == U' ' ? kMark : c.code; };
    const bool safe = left.as_byte || right.as_byte || !pairs_.contains(pair_of(known(left), known(right)));
    if (safe && i >= position && i > 0) return i;
    left = right;
  }
  return text.size();
}

}  // namespace mulligan
