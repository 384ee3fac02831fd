#include "framework/data/text_source.h"

#include <algorithm>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/mapped_file.h"
#include "framework/core/parse_json.h"
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
  explicit Cleaner(std::size_t capacity) { text_.reserve(capacity); }
  void space() { space_ = true; }
  void line_end() { ++lines_; }
  void character(std::string_view bytes) {
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
  }
  void drop_pending_space() { space_ = false; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int lines_ = 0;
  bool space_ = false;
};

bool is_jsonl(const std::filesystem::path& path) {
  return path.extension() == ".jsonl" || path.extension() == ".ndjson";
}

// The regular files below a folder, hidden names left out, sorted by path.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator();
       ++entry) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden && entry->is_directory()) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file()) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string clean_text(std::string_view text) {
  Cleaner cleaner(text.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(character.size());
    if (character == " " || character == "\t") {
      cleaner.space();
    } else if (character == "\n" || (character == "\r" && !text.starts_with('\n'))) {
      cleaner.drop_pending_space();
      cleaner.line_end();
    } else if (length > 0 && !is_control(character)) {
      cleaner.character(character);
    }
  }
  return cleaner.take();
}

struct TextSource::JsonlFile {
  MappedFile file;
};

TextSource::TextSource(const std::vector<std::filesystem::path>& inputs) {
  for (const auto& input : inputs) {
    std::error_code error;
    const auto status = std::filesystem::status(input, error);
    if (std::filesystem::is_directory(status)) {
      for (const auto& file : files_below(input)) add(file);
    } else if (std::filesystem::is_regular_file(status)) {
      add(input);
    } else {
      throw data_error(
          "the text input '{}' is neither a folder nor a file; give folders, text files or JSONL files",
          input.string());
    }
  }
}
TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;
TextSource& TextSource::operator=(TextSource&&) noexcept = default;

void TextSource::add(const std::filesystem::path& path) {
  if (is_jsonl(path)) {
    add_jsonl(path);
    return;
  }
  entries_.push_back({static_cast<std::uint32_t>(paths_.size()), 0, 0, 0});
  paths_.push_back(path);
  jsonl_.push_back(nullptr);
}

void TextSource::add_jsonl(const std::filesystem::path& path) {
  auto jsonl = std::make_unique<JsonlFile>(JsonlFile{MappedFile(path)});
  const auto bytes = jsonl->file.bytes();
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  const std::string_view whole(begin, bytes.size());
  std::uint32_t line = 0;
  for (std::size_t position = 0; position < whole.size();) {
    std::size_t end = whole.find('\n', position);
    if (end == std::string_view::npos) end = whole.size();
    ++line;
    if (whole.substr(position, end - position).find_first_not_of(" \t\r") != std::string_view::npos) {
      entries_.push_back({static_cast<std::uint32_t>(paths_.size()), line, position, end - position});
    }
    position = end + 1;
  }
  paths_.push_back(path);
  jsonl_.push_back(std::move(jsonl));
}

std::string TextSource::name(std::size_t document) const {
  const Entry& entry = entries_[document];
  const std::string path = paths_[entry.file].string();
  return entry.line == 0 ? path : fmt::format("{}:{}", path, entry.line);
}

std::string TextSource::text(std::size_t document) const {
  const Entry& entry = entries_[document];
  if (entry.line == 0) {
    const std::string bytes = read_file(paths_[entry.file]);
    return bytes.find('\0') == std::string::npos ? clean_text(bytes) : std::string();
  }
  const auto bytes = jsonl_[entry.file]->file.bytes().subspan(entry.begin, entry.length);
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json line = parse_json({begin, bytes.size()});
  if (!line.is_object() || !line.contains("text") || !line["text"].is_string()) {
    throw data_error("{}: a JSONL document must be an object with a string \"text\"; mend or remove the line",
                     name(document));
  }
  return clean_text(line["text"].get_ref<const std::string&>());
}

}  // namespace mulligan
