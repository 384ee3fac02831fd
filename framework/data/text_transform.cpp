#include "framework/data/text_transform.h"

#include <algorithm>
#include <cstddef>

#include "framework/core/error.h"

namespace mulligan {

const TextTransform& text_transform(std::string_view name) {
  static const TextTransform caseops;
  if (name == caseops.name()) return caseops;
  throw config_error("there is no text transform '{}'; there is {}", name, caseops.name());
}

namespace {

// The control characters differ in their last byte.
constexpr std::size_t kControlBytes = 3;
enum class Control : char { none = 0, title = '\x81', allcaps = '\x82', capnext = '\x83', escape = '\x84' };

Control control_at(std::string_view text) {
  if (text.size() < kControlBytes || text[0] != '\xEE' || text[1] != '\x80') return Control::none;
  switch (const auto last = static_cast<Control>(text[2])) {
    case Control::title:
    case Control::allcaps:
    case Control::capnext:
    case Control::escape:
      return last;
    default:
      return Control::none;
  }
}

std::string text_of(Control control) {
  return {'\xEE', '\x80', static_cast<char>(control)};
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_letter(char c) {
  return is_upper(c) || is_lower(c);
}
char lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
char upper(char c) {
  return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
}

}  // namespace

std::vector<std::string> TextTransform::symbols() const {
  return {text_of(Control::title), text_of(Control::allcaps), text_of(Control::capnext),
          text_of(Control::escape)};
}

std::string TextTransform::apply(std::string_view text, std::vector<std::uint64_t>* ends) const {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  std::size_t read = 0;
  // Writes what stands for so many bytes of the text, after a mark if there is one.
  const auto write = [&](Control mark, std::string_view character) {
    if (mark != Control::none) out += text_of(mark);
    out += character;
    if (ends) ends->resize(out.size() - 1, read);
    read += character.size();
    if (ends) ends->push_back(read);
  };
  while (read < text.size()) {
    const std::string_view rest = text.substr(read);
    const auto letters = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_letter) - rest.begin());
    if (control_at(rest) != Control::none) {
      write(Control::escape, rest.substr(0, kControlBytes));
    } else if (letters == 0) {
      write(Control::none, rest.substr(0, 1));
    }
    const std::string_view word = rest.substr(0, letters);
    const bool capitals = letters > 1 && std::ranges::all_of(word, is_upper);
    for (std::size_t i = 0; i < letters; ++i) {
      const char letter = lower(word[i]);
      Control mark = Control::none;
      if (is_upper(word[i]) && i == 0) mark = capitals ? Control::allcaps : Control::title;
      if (is_upper(word[i]) && i > 0 && !capitals) mark = Control::capnext;
      write(mark, std::string_view(&letter, 1));
    }
  }
  return out;
}

std::string TextTransform::undo(std::string_view transformed) const {
  std::string out;
  std::string_view rest = transformed;
  Control mark = Control::none;  // that stands in front of the character
  bool in_word = false, capitals = false;
  const auto require = [&](bool sound, const char* what) {
    data_error_if(!sound, "byte {} of the text: it {}, so no caseops transform has made it",
                  transformed.size() - rest.size(), what);
  };
  while (!rest.empty()) {
    const Control control = control_at(rest);
    const std::string_view character = rest.substr(0, control == Control::none ? 1 : kControlBytes);
    const bool escaped = mark == Control::escape;
    rest.remove_prefix(character.size());
    if (control != Control::none && !escaped) {
      const bool of_word = control == Control::title || control == Control::allcaps;
      require(mark == Control::none, "has a mark in front of another");
      require(!of_word || !in_word, "has a mark of a word within a word");
      mark = control;
      continue;
    }
    in_word = is_letter(character[0]);
    require(in_word || escaped || mark == Control::none, "has a mark that no letter follows");
    capitals = in_word && (capitals || mark == Control::allcaps);
    const bool capital = !escaped && (capitals || mark != Control::none);
    out += capital ? std::string(1, upper(character[0])) : std::string(character);
    mark = Control::none;
  }
  require(mark == Control::none, "ends with a mark");
  return out;
}

}  // namespace mulligan
