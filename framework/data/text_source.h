// The documents of a corpus on disk: folders of text files, single files, JSONL files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// What is done to documents while they are read. By default nothing.
struct TextRules {
  bool clean = false;             // clean_text() on each, and documents with a NUL byte are left out
  bool skip_binary = false;       // documents with a NUL byte are left out
  std::string json_key = "text";  // of the text in a JSONL line's object
};

// Cleans a text: invalid UTF-8 and control characters are dropped, CR LF and CR become LF, runs of spaces and
// tabs one space, spaces at line ends vanish, three and more line ends become two, both ends are trimmed.
std::string clean_text(std::string_view text);

// Random access to the documents of a list of inputs, in a fixed order: inputs as given, files of a folder by
// path (hidden files and folders are left out), lines of a JSONL file in order.
class TextSource {
 public:
  // inputs: folders (all regular files below, one document each; *.jsonl and *.ndjson hold one per line), or
  // files. Throws data_error for an input that does not exist and for a JSONL line that is neither {"text":
  // "..."} nor a bare "..." (file:line).
  explicit TextSource(const std::vector<std::filesystem::path>& inputs, TextRules rules = {});
  ~TextSource();
  TextSource(TextSource&&) noexcept;
  TextSource& operator=(TextSource&&) noexcept;

  std::size_t size() const { return entries_.size(); }
  const TextRules& rules() const { return rules_; }
  // The document as it is stored. Thread-safe. Throws data_error naming the file, or file:line and what is
  // wrong with a JSONL line.
  std::string raw(std::size_t document) const;
  // What the rules make of it. Thread-safe.
  std::string text(std::size_t document) const;
  // "folder/name" or "file.jsonl:12".
  std::string name(std::size_t document) const;
  // Hidden files and folders that were left out.
  const std::vector<std::filesystem::path>& hidden() const { return hidden_; }

 private:
  struct JsonlFile;
  struct Entry {
    std::uint32_t file = 0;   // into paths_
    std::uint32_t line = 0;   // 0: the whole file is one document
    std::uint64_t begin = 0;  // byte range of a JSONL line
    std::uint64_t length = 0;
  };
  void add_folder(const std::filesystem::path& folder);
  void add(const std::filesystem::path& path);
  void add_jsonl(const std::filesystem::path& path);

  TextRules rules_;
  std::vector<std::filesystem::path> hidden_;
  std::vector<std::filesystem::path> paths_;
  std::vector<std::unique_ptr<JsonlFile>> jsonl_;  // by index into paths_; null for a plain text file
  std::vector<Entry> entries_;
};

}  // namespace mulligan
