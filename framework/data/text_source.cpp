#include "framework/data/text_source.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/mapped_file.h"
#include "framework/core/shell.h"

namespace mulligan {
namespace {

// Of a JSONL file. A line is looked at only so far, so that a file without line ends is refused at once.
constexpr std::size_t kLongestLine = std::size_t{1} << 30;

Error wide_error(const std::filesystem::path& file, const WideEncoding& encoding, std::size_t others) {
  std::filesystem::path converted = file;
  converted.replace_extension(".utf8" + file.extension().string());
  return data_error(
      "'{}' is {}{}, but text is read as UTF-8; convert it with\n  iconv -f {} -t UTF-8 {} > {}\nor leave such files "
      "out with --skip-binary",
      file.string(), encoding.shown,
      others == 0 ? "" : fmt::format(", and {} other file{} like it", others, others == 1 ? " is" : "s are"),
      encoding.name, shell_quoted(file.string()), shell_quoted(converted.string()));
}

}  // namespace

struct TextSource::JsonlFile {
  MappedFile file;
};

TextSource::TextSource(const std::vector<std::filesystem::path>& inputs, TextRules rules)
    : rules_(std::move(rules)), found_(find_text_files(inputs)) {
  std::vector<std::pair<std::size_t, WideEncoding>> wide;
  for (std::size_t i = 0; i < found_.files.size(); ++i) {
    TextFileLook look = look_at_text_file(found_.files[i], rules_.json_key);
    jsonl_.push_back(nullptr);
    if (!look.wide.name.empty()) {
      wide.emplace_back(i, std::move(look.wide));
      continue;
    }
    const auto file = static_cast<std::uint32_t>(i);
    if (look.form == TextForm::json_lines || look.form == TextForm::found_lines) {
      if (look.form == TextForm::found_lines) read_as_.found_lines.push_back(found_.files[i]);
      add_jsonl(file);
      continue;
    }
    if (look.form != TextForm::plain) read_as_.suspects.emplace_back(found_.files[i], look.form);
    ++read_as_.plain_files;
    entries_.push_back({file, 0, 0, 0});
  }
  if (wide.empty()) return;
  if (!rules_.skip_binary && !rules_.clean)
    throw wide_error(found_.files[wide.front().first], wide.front().second, wide.size() - 1);
  for (const auto& [file, encoding] : wide) found_.left_out.emplace_back(found_.files[file], "it is " + encoding.shown);
}
TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;
TextSource& TextSource::operator=(TextSource&&) noexcept = default;

void TextSource::add_jsonl(std::uint32_t file) {
  const std::filesystem::path& path = found_.files[file];
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
      entries_.push_back({file, line, position, end - position});
      ++read_as_.json_lines;
    }
    position = end + 1;
  }
  ++read_as_.json_files;
  jsonl_.back() = std::move(jsonl);
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
  const auto bytes = jsonl_[entry.file]->file.bytes().subspan(entry.begin, entry.length);
  return read_json_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, rules_.json_key);
}

std::string TextSource::raw(std::size_t document) const {
  JsonLine line = read(document);
  if (line.problem.empty()) return std::move(line.text);
  throw data_error("{}: {}; correct or remove the line, or leave such lines out with --skip-bad-lines", name(document),
                   line.problem);
}

std::string TextSource::text(std::size_t document, TextOrigin* origin) const {
  std::string text = raw(document);
  const std::uint64_t bytes = text.size();
  std::vector<std::uint64_t> ends;
  if (rules_.clean) text = clean_text(text, origin ? &ends : nullptr);
  if (origin) *origin = TextOrigin(std::move(ends), bytes);
  return text;
}

}  // namespace mulligan
