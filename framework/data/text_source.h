// The documents of a corpus on disk: folders of text files, single files, JSONL files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// Cleans a text: invalid UTF-8 and control characters are dropped, CR LF and CR become LF, runs of spaces and
// tabs one space, spaces at line ends vanish, three and more line ends become two, both ends are trimmed.
std::string clean_text(std::string_view text);

// Random access to the documents of a list of inputs, in a fixed order: inputs as given, files of a folder by
// path (hidden files and folders are left out), lines of a JSONL file in order.
class TextSource {
 public:
  // inputs: folders (all regular files below, one document each; *.jsonl and *.ndjson hold one per line), or
  // files. Throws data_error for an input that does not exist and for a JSONL line that is not {"text":
  // "..."} (file:line).
  explicit TextSource(const std::vector<std::filesystem::path>& inputs);
  ~TextSource();
  TextSource(TextSource&&) noexcept;
  TextSource& operator=(TextSource&&) noexcept;

  std::size_t size() const { return entries_.size(); }
  // The cleaned text; empty for a binary file (one with a NUL byte). Thread-safe.
  std::string text(std::size_t document) const;
  // "folder/name" or "file.jsonl:12".
  std::string name(std::size_t document) const;

 private:
  struct JsonlFile;
  struct Entry {
    std::uint32_t file = 0;   // into paths_
    std::uint32_t line = 0;   // 0: the whole file is one document
    std::uint64_t begin = 0;  // byte range of a JSONL line
    std::uint64_t length = 0;
  };
  void add(const std::filesystem::path& path);
  void add_jsonl(const std::filesystem::path& path);

  std::vector<std::filesystem::path> paths_;
  std::vector<std::unique_ptr<JsonlFile>> jsonl_;  // by index into paths_; null for a plain text file
  std::vector<Entry> entries_;
};

}  // namespace mulligan
