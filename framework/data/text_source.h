// The documents of a corpus on disk: folders of text files, single files, JSONL files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/data/text_files.h"

namespace mulligan {

class MappedFile;

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

// What is done to documents while they are read. By default nothing.
struct TextRules {
  bool clean = false;             // clean_text() on each, and documents with a NUL byte are left out
  bool skip_binary = false;       // documents with a NUL byte, and files of other_contents(), are left out
  bool skip_bad_lines = false;    // lines of JSONL files without a text are left out
  std::string json_key = "text";  // of the text in a JSONL line's object
};

// Random access to the documents of a list of inputs, in a fixed order: inputs as given, files of a folder by
// path (hidden files and folders are left out), lines of a JSONL file in order.
class TextSource {
 public:
  // inputs: folders (all files below, one document each; files of JSON Lines, by name or contents, hold one per line),
  // or files. Throws data_error as find_text_files, and for a file of other_contents() that the rules do not leave
  // out.
  explicit TextSource(const std::vector<std::filesystem::path>& inputs, TextRules rules = {});

  std::size_t size() const { return entries_.size(); }
  const TextRules& rules() const { return rules_; }
  // The document as it is stored. Thread-safe. Throws data_error naming the file, or file:line and what is
  // wrong with a JSONL line.
  std::string raw(std::size_t document) const;
  // The same with its size in another place: that which a line of JSON states of itself. `problem`: of a line, in
  // words, without a place; the text is then empty.
  JsonLine read(std::size_t document) const;
  // What the rules make of it; `origin`, if given, says where its bytes come from. Thread-safe.
  std::string text(std::size_t document, TextOrigin* origin = nullptr) const;
  // "folder/name" or "file.jsonl:12".
  std::string name(std::size_t document) const;

  // What was found under the inputs, and how it was read.
  const TextFiles& found() const { return found_; }
  struct ReadAs {
    // json_by_contents: those of json_files whose names do not say it.
    std::uint64_t plain_files = 0, json_files = 0, json_lines = 0, json_by_contents = 0;
    std::vector<std::pair<std::filesystem::path, TextForm>>
        remarks;  // these, and plain files that look like JSON
  };
  const ReadAs& read_as() const { return read_as_; }

 private:
  struct Entry {
    std::uint32_t file = 0;   // into found_.files
    std::uint32_t line = 0;   // 0: the whole file is one document
    std::uint64_t begin = 0;  // byte range of a JSONL line
    std::uint64_t length = 0;
  };
  void add_jsonl(std::uint32_t file);

  TextRules rules_;
  TextFiles found_;
  ReadAs read_as_;
  std::vector<std::shared_ptr<const MappedFile>>
      jsonl_;  // by index into found_.files; null for a plain text file
  std::vector<Entry> entries_;
};

}  // namespace mulligan
