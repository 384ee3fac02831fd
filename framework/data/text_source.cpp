#include "framework/data/text_source.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/mapped_file.h"
#include "framework/core/parse_json.h"
#include "framework/core/utf8.h"

namespace mulligan {
namespace {

// Of a JSONL file. A line is looked at only so far, so that a file without line ends is refused at once.
constexpr std::size_t kLongestLine = std::size_t{1} << 30;

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

// The keys of an object, as a reader would write them; the first few.
std::string keys_of(const nlohmann::json& object) {
  std::string names;
  int listed = 0;
  for (const auto& [key, value] : object.items()) {
    if (++listed > 8) return names + ", ...";
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", key);
  }
  return names.empty() ? "none" : names;
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

TextSource::TextSource(const std::vector<std::filesystem::path>& inputs, TextRules rules)
    : rules_(std::move(rules)) {
  for (const auto& input : inputs) {
    std::error_code error;
    const auto status = std::filesystem::status(input, error);
    if (std::filesystem::is_directory(status)) {
      add_folder(input);
    } else if (std::filesystem::is_regular_file(status)) {
      add(input);
    } else {
      throw data_error(
          "the text input '{}' is neither a folder nor a file{}; give folders, text files or JSONL files",
          input.string(), error ? " (" + error.message() + ")" : "");
    }
  }
}
TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;
TextSource& TextSource::operator=(TextSource&&) noexcept = default;

// The regular files below a folder, hidden names left out, sorted by path.
void TextSource::add_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  try {
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator();
         ++entry) {
      std::error_code ignored;  // of a link that leads nowhere
      if (entry->path().filename().string().starts_with('.')) {
        if (entry->is_directory(ignored)) entry.disable_recursion_pending();
        hidden_.push_back(entry->path());
      } else if (entry->is_regular_file(ignored)) {
        files.push_back(entry->path());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw data_error("cannot read the folder '{}': {}; check its permissions and those below it",
                     (error.path1().empty() ? folder : error.path1()).string(), error.code().message());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) add(file);
}

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
    ++line;
    std::size_t end = whole.substr(position, kLongestLine + 1).find('\n');
    if (end == std::string_view::npos && whole.size() - position > kLongestLine) {
      throw data_error("{}:{}: the line has more than {} bytes, the most of one document; divide it",
                       path.string(), line, kLongestLine);
    }
    end = end == std::string_view::npos ? whole.size() : position + end;
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

std::string TextSource::raw(std::size_t document) const {
  const Entry& entry = entries_[document];
  if (entry.line == 0) return read_file(paths_[entry.file]);
  const auto bytes = jsonl_[entry.file]->file.bytes().subspan(entry.begin, entry.length);
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json line = parse_json({begin, bytes.size()});
  if (line.is_discarded()) {
    throw data_error(
        "{}: the line is not valid JSON; correct or remove it (a JSONL file holds one object per line)",
        name(document));
  }
  if (line.is_string()) return line.get<std::string>();
  if (!line.is_object()) {
    throw data_error(
        "{}: the line is JSON but not an object such as {{\"{}\": \"...\"}}; correct or remove it",
        name(document), rules_.json_key);
  }
  const auto text = line.find(rules_.json_key);
  if (text == line.end() || !text->is_string()) {
    throw data_error("{}: {} under the key '{}'; the line's keys are {}: name the text's key with --json-key",
                     name(document), text == line.end() ? "there is nothing" : "there is no string",
                     rules_.json_key, keys_of(line));
  }
  return text->get<std::string>();
}

std::string TextSource::text(std::size_t document) const {
  std::string text = raw(document);
  return rules_.clean ? clean_text(text) : text;
}

}  // namespace mulligan
