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

// A run of letters.
void append_word(std::string_view word, std::string& out) {
  const std::string_view rest = word.substr(1);
  const bool rest_lower = std::ranges::all_of(rest, is_lower);
  const bool whole =
      (is_lower(word[0]) && rest_lower) || (word.size() > 1 && std::ranges::all_of(word, is_upper));
  if (is_upper(word[0])) out += text_of(whole ? Control::allcaps : Control::title);
  out += lower(word[0]);
  for (const char letter : rest) {
    if (is_upper(letter) && !whole) out += text_of(Control::capnext);
    out += lower(letter);
  }
}

// Reads a transformed text character by character.
class Inverse {
 public:
  std::string run(std::string_view text) {
    while (at_ < text.size()) {
      const Control control = control_at(text.substr(at_));
      if (escaped_) {
        literal(control == Control::none ? text.substr(at_, 1) : text.substr(at_, kControlBytes));
      } else if (control == Control::escape) {
        escaped_ = true;
        at_ += kControlBytes;
      } else if (control != Control::none) {
        mark(control);
        at_ += kControlBytes;
      } else if (is_letter(text[at_])) {
        letter(text[at_++]);
      } else {
        other(text[at_++]);
      }
    }
    if (escaped_) throw wrong("ends with an escape that nothing follows");
    if (mode_ != Control::none || next_) throw wrong("ends with a mark that no letter follows");
    return std::move(out_);
  }

 private:
  Error wrong(const char* what) const {
    return data_error("byte {} of the text: it {}, so no caseops transform has made it", at_, what);
  }

  void literal(std::string_view character) {
    const bool is_word = character.size() == 1 && is_letter(character[0]);
    if (mode_ != Control::none && !is_word)
      throw wrong("has an escaped character where a mark wants a letter");
    out_ += character;
    at_ += character.size();
    escaped_ = false;
    in_word_ = is_word;
    if (!is_word) all_ = false;
  }
  void mark(Control control) {
    if (control == Control::capnext) {
      if (next_) throw wrong("has two marks for one capital letter");
      next_ = true;
      return;
    }
    if (mode_ != Control::none || in_word_ || next_) throw wrong("has a mark of a word where no word begins");
    mode_ = control;
  }
  void letter(char c) {
    if (in_word_ && mode_ != Control::none) throw wrong("has a mark of a word within a word");
    if (!in_word_ && mode_ == Control::allcaps) all_ = true;
    const bool capital = in_word_ ? all_ || next_ : mode_ != Control::none || next_;
    out_ += capital ? upper(c) : c;
    mode_ = Control::none;
    next_ = false;
    in_word_ = true;
  }
  void other(char c) {
    if (mode_ != Control::none || next_) throw wrong("has a mark that no letter follows");
    out_ += c;
    in_word_ = false;
    all_ = false;
  }

  std::size_t at_ = 0;
  std::string out_;
  bool escaped_ = false, next_ = false, in_word_ = false, all_ = false;
  Control mode_ = Control::none;  // of the coming word
};

}  // namespace

std::vector<std::string> TextTransform::symbols() const {
  return {text_of(Control::title), text_of(Control::allcaps), text_of(Control::capnext),
          text_of(Control::escape)};
}

std::string TextTransform::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    if (control_at(text) != Control::none) {
      out += text_of(Control::escape);
      out += text.substr(0, kControlBytes);
      text.remove_prefix(kControlBytes);
      continue;
    }
    const auto letters = static_cast<std::size_t>(std::ranges::find_if_not(text, is_letter) - text.begin());
    if (letters == 0) {
      out += text.front();
      text.remove_prefix(1);
    } else {
      append_word(text.substr(0, letters), out);
      text.remove_prefix(letters);
    }
  }
  return out;
}

std::string TextTransform::undo(std::string_view transformed) const {
  return Inverse().run(transformed);
}

std::vector<std::uint64_t> TextTransform::original_bytes(std::span<const std::string> slices) const {
  std::vector<std::uint64_t> counts;
  counts.reserve(slices.size());
  bool escaped = false;
  std::string waiting;  // what may become a control character
  for (const std::string& slice : slices) {
    std::uint64_t count = 0;
    for (const char byte : slice) {
      waiting += byte;
      while (!waiting.empty() && waiting != "\xEE" && waiting != "\xEE\x80") {
        const Control control = control_at(waiting);
        if (control != Control::none && !escaped) {
          escaped = control == Control::escape;
          waiting.clear();
          continue;
        }
        const std::size_t length = control == Control::none ? 1 : kControlBytes;
        count += length;
        escaped = false;
        waiting.erase(0, length);
      }
    }
    counts.push_back(count);
  }
  if (!counts.empty()) counts.back() += waiting.size();
  return counts;
}

}  // namespace mulligan
