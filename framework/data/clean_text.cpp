#include "framework/data/clean_text.h"

#include <algorithm>

#include "framework/core/utf8.h"

namespace mulligan {
namespace {

// C0 controls other than those handled as white space, DEL, and C1 controls (U+0080..U+009F).
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

// Collects characters and writes white space only once it is known what follows.
class Cleaner {
 public:
  Cleaner(std::size_t capacity, std::vector<std::uint64_t>* ends) : ends_(ends) { text_.reserve(capacity); }
  void space() { space_ = true; }
  void line_end() { ++lines_; }
  // `begin`: of the character in the original.
  void character(std::string_view bytes, std::uint64_t begin) {
    if (!text_.empty()) {
      if (lines_ > 0) {
        text_.append(std::min(lines_, 2), '\n');
      }
      // A line's indentation is one space; a space before a line end is gone.
      if (space_) text_ += ' ';
    }
    lines_ = 0;
    space_ = false;
    text_ += bytes;
    if (!ends_) return;
    ends_->resize(text_.size() - 1, begin);
    ends_->push_back(begin + bytes.size());
  }
  void drop_pending_space() { space_ = false; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::vector<std::uint64_t>* ends_;
  int lines_ = 0;
  bool space_ = false;
};

}  // namespace

std::string clean_text(std::string_view text, std::vector<std::uint64_t>* ends) {
  Cleaner cleaner(text.size(), ends);
  const char* start = text.data();
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto begin = static_cast<std::uint64_t>(text.data() - start);
    text.remove_prefix(character.size());
    if (character == " " || character == "\t") {
      cleaner.space();
    } else if (character == "\n" || (character == "\r" && !text.starts_with('\n'))) {
      cleaner.drop_pending_space();
      cleaner.line_end();
    } else if (length > 0 && !is_control(character)) {
      cleaner.character(character, begin);
    }
  }
  return cleaner.take();
}

}  // namespace mulligan
