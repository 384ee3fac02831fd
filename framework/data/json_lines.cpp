// Which files hold JSON Lines, and their lines.
#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/mapped_file.h"
#include "framework/core/parse_json.h"
#include "framework/core/printable.h"
#include "framework/data/text_files.h"

namespace mulligan {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kBlank = " \t\r";

// The keys of an object, as a reader would write them; the first few.
std::string keys_of(const nlohmann::json& object) {
  std::string names;
  int listed = 0;
  for (const auto& [key, value] : object.items()) {
    if (++listed > 8) return names + ", ...";
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", printable(key));
  }
  return names.empty() ? "none" : names;
}

std::string json_problem(std::string_view line) {
  constexpr std::size_t longest = 160;
  if (!nested_within(line, deepest_json))
    return fmt::format("the line is not valid JSON: it is nested deeper than {} levels", deepest_json);
  try {
    [[maybe_unused]] const nlohmann::json value = nlohmann::json::parse(line);
  } catch (const nlohmann::json::exception& error) {
    std::string reason =
        error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 9: ..."
    if (const std::size_t place = reason.find("column"); place != std::string::npos) reason.erase(0, place);
    return fmt::format("the line is not valid JSON ({})", printable(reason.substr(0, longest)));
  }
  return "the line is not valid JSON";
}

std::string extension_of(const std::filesystem::path& file) {
  std::string extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension;
}

// What the first lines of a file are.
struct Sample {
  std::size_t lines = 0, objects = 0, with_text = 0;
};

Sample sample_of(std::string_view text, const std::string& key) {
  constexpr std::size_t most_lines = 64, most_bytes = std::size_t{16} << 20;
  Sample sample;
  std::size_t at = 0;
  while (at < text.size() && sample.lines < most_lines && (sample.lines == 0 || at < most_bytes)) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find_first_not_of(kBlank);
    if (first == std::string_view::npos) continue;
    ++sample.lines;
    if (line[first] != '{') continue;
    const nlohmann::json value = parse_json(line);
    if (!value.is_object()) continue;
    ++sample.objects;
    if (value.contains(key)) ++sample.with_text;
  }
  return sample;
}

TextForm form_of(const std::filesystem::path& file, std::string_view text, const std::string& key) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text.substr(0, 4096).find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return TextForm::plain;
  const bool json = extension_of(file) == ".json";
  if (json && text[first] == '[' && parse_json(text).is_array()) return TextForm::json_collection;
  if (text[first] != '{') return TextForm::plain;
  const Sample sample = sample_of(text, key);
  if (sample.with_text * 2 > sample.lines) return TextForm::found_lines;
  if (sample.lines < 2 || sample.objects * 2 <= sample.lines) return TextForm::plain;
  // Several values are no JSON file, so under that name they are lines, and a missing key is named.
  return json ? TextForm::found_lines : TextForm::foreign_lines;
}

}  // namespace

TextFileLook look_at_text_file(const std::filesystem::path& file, const std::string& key) {
  const MappedFile mapped(file);
  TextFileLook look;
  look.other = other_contents(mapped.text());
  if (!look.other.shown.empty()) return look;
  const std::string name = extension_of(file);
  const bool lines = name == ".jsonl" || name == ".ndjson" || name == ".jsonlines";
  look.form = lines ? TextForm::json_lines : form_of(file, mapped.text(), key);
  return look;
}

JsonLine read_json_line(std::string_view line, const std::string& key) {
  const nlohmann::json value = parse_json(line);
  JsonLine read;
  if (value.is_discarded()) {
    read.problem = json_problem(line);
  } else if (value.is_string()) {
    read.text = value.get<std::string>();
  } else if (!value.is_object()) {
    read.problem = fmt::format("the line is JSON but not an object such as {{\"{}\": \"...\"}}", key);
  } else if (const auto text = value.find(key); text == value.end()) {
    read.problem = fmt::format(
        "there is nothing under the key '{}'; the line's keys are {} (name the text's key with --json-key)",
        key, keys_of(value));
  } else if (!text->is_string()) {
    read.problem =
        fmt::format("the text under the key '{}' is of the type {}, not a string", key, text->type_name());
  } else {
    read.text = text->get<std::string>();
  }
  read.source_bytes = read.text.size();
  if (!value.is_object()) return read;
  if (const auto bytes = value.find("source_bytes"); bytes != value.end() && bytes->is_number_unsigned())
    read.source_bytes = bytes->get<std::uint64_t>();
  return read;
}

}  // namespace mulligan
