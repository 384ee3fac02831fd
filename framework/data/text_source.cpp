#include "framework/data/text_source.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/mapped_file.h"
#include "framework/core/shell.h"
#include "framework/core/utf8.h"

namespace mulligan {
namespace {

// Of a JSONL file. A line is looked at only so far, so that a file without line ends is refused at once.
constexpr std::size_t kLongestLine = std::size_t{1} << 30;

Error contents_error(const std::filesystem::path& file, const OtherContents& other, std::size_t others) {
  std::filesystem::path converted = file;
  converted.replace_extension(".utf8" + file.extension().string());
  return data_error(
      "'{}' is {}{}, but text is read as UTF-8; convert it with `{}`, or leave such files out with --skip-binary",
      file.string(), other.shown,
      others == 0 ? ""
                  : fmt::format(", and {} other file{} no such text", others, others == 1 ? " is" : "s are"),
      fmt::format(fmt::runtime(other.command), shell_path(file.string()), shell_path(converted.string())));
}

}  // namespace

TextSource::TextSource(const std::vector<std::filesystem::path>& inputs, TextRules rules)
    : rules_(std::move(rules)), found_(find_text_files(inputs)) {
  std::vector<std::pair<std::size_t, OtherContents>> others;
  for (std::size_t i = 0; i < found_.files.size(); ++i) {
    TextFileLook look = look_at_text_file(found_.files[i], rules_.json_key);
    jsonl_.push_back(nullptr);
    if (!look.other.shown.empty()) {
      others.emplace_back(i, std::move(look.other));
      continue;
    }
    const auto file = static_cast<std::uint32_t>(i);
    if (look.form != TextForm::plain && look.form != TextForm::json_lines)
      read_as_.remarks.emplace_back(found_.files[i], look.form);
    if (look.form == TextForm::json_lines || look.form == TextForm::found_lines) {
      read_as_.json_by_contents += look.form == TextForm::found_lines;
      add_jsonl(file);
      continue;
    }
    ++read_as_.plain_files;
    entries_.push_back({file, 0, 0, 0});
  }
  if (others.empty()) return;
  if (!rules_.skip_binary && !rules_.clean)
    throw contents_error(found_.files[others.front().first], others.front().second, others.size() - 1);
  for (const auto& [file, other] : others)
    found_.left_out.emplace_back(found_.files[file], "it is " + other.shown);
}

void TextSource::add_jsonl(std::uint32_t file) {
  const std::filesystem::path& path = found_.files[file];
  jsonl_.back() = std::make_shared<const MappedFile>(path);
  const std::string_view whole = jsonl_.back()->text();
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
      entries_.push_back({file, line, position, end - position});
      ++read_as_.json_lines;
    }
    position = end + 1;
  }
  ++read_as_.json_files;
}

std::string TextSource::name(std::size_t document) const {
  const Entry& entry = entries_[document];
  const std::string path = found_.files[entry.file].string();
  return entry.line == 0 ? path : fmt::format("{}:{}", path, entry.line);
}

JsonLine TextSource::read(std::size_t document) const {
  const Entry& entry = entries_[document];
  if (entry.line == 0) {
    std::string text = read_file(found_.files[entry.file]);
    const std::uint64_t bytes = text.size();
    return {std::move(text), bytes, ""};
  }
  return read_json_line(jsonl_[entry.file]->text().substr(entry.begin, entry.length), rules_.json_key);
}

std::string TextSource::raw(std::size_t document) const {
  JsonLine line = read(document);
  if (line.problem.empty()) return std::move(line.text);
  throw data_error("{}: {}; correct or remove the line, or leave such lines out with --skip-bad-lines",
                   name(document), line.problem);
}

std::string TextSource::text(std::size_t document, TextOrigin* origin) const {
  std::string text = raw(document);
  const std::uint64_t bytes = text.size();
  std::vector<std::uint64_t> ends;
  if (rules_.clean) text = clean_text(text, origin ? &ends : nullptr);
  if (origin) *origin = TextOrigin(std::move(ends), bytes);
  return text;
}

namespace {

// C0 controls other than those handled as white space, DEL, and C1 controls (U+0080..U+009F).
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string clean_text(std::string_view text, std::vector<std::uint64_t>* ends) {
  std::string clean;
  clean.reserve(text.size());
  std::size_t line_ends = 0;  // these and a space are written once a character follows
  bool space = false;
  const char* start = text.data();
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto begin = static_cast<std::uint64_t>(text.data() - start);
    text.remove_prefix(character.size());
    if (character == " " || character == "\t") {
      space = true;
    } else if (character == "\n" || (character == "\r" && !text.starts_with('\n'))) {
      ++line_ends;
      space = false;  // a space before a line end is dropped
    } else if (length > 0 && !is_control(character)) {
      // A line's indentation is one space.
      if (!clean.empty()) clean.append(std::min(line_ends, std::size_t{2}), '\n').append(space ? 1 : 0, ' ');
      line_ends = 0;
      space = false;
      clean += character;
      if (!ends) continue;
      ends->resize(clean.size() - 1, begin);
      ends->push_back(begin + character.size());
    }
  }
  return clean;
}

}  // namespace mulligan
