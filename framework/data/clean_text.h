// Text of documents before it is encoded: what `mulligan prepare --clean` takes out, and which bytes of the original
// the remaining ones stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// Where the bytes of a changed text come from in the text that it was made of. Every byte of the original belongs to
// one byte of the changed text, in order; what was dropped belongs to the byte after it, or to the last one.
class TextOrigin {
 public:
  TextOrigin() = default;
  // An unchanged text of `bytes`.
  explicit TextOrigin(std::uint64_t bytes) : bytes_(bytes) {}
  // `ends`: for each byte of the changed text where its stretch of the original ends; never falling.
  TextOrigin(std::vector<std::uint64_t> ends, std::uint64_t bytes) : ends_(std::move(ends)), bytes_(bytes) {}

  std::uint64_t bytes() const { return bytes_; }  // of the original
  // Bytes of the original that belong to the first `length` of the `size` bytes of the changed text.
  std::uint64_t before(std::size_t length, std::size_t size) const {
    if (length == 0) return 0;
    if (length >= size) return bytes_;
    return ends_.empty() ? length : ends_[length - 1];
  }
  // The text has been changed once more: `ends` says how, by places in the text so far, of `size` bytes.
  void change(std::vector<std::uint64_t> ends, std::size_t size) {
    for (std::uint64_t& end : ends) end = before(static_cast<std::size_t>(end), size);
    ends_ = std::move(ends);
  }

 private:
  std::vector<std::uint64_t> ends_;  // empty: unchanged
  std::uint64_t bytes_ = 0;
};

// Cleans a text: invalid UTF-8 and control characters are dropped, CR LF and CR become LF, runs of spaces and
// tabs one space, spaces at line ends vanish, three and more line ends become two, both ends are trimmed. Appends to
// `ends`, if given, what TextOrigin needs.
std::string clean_text(std::string_view text, std::vector<std::uint64_t>* ends = nullptr);

}  // namespace mulligan
