#include "framework/report/json_lines.h"

#include <cstring>
#include <limits>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/core/parse_json.h"

namespace mulligan {

using Json = nlohmann::ordered_json;

namespace {

// As read_json_lines, with the line's text.
bool for_each_line(std::string_view text, const std::string& origin,
                   const std::function<void(std::string_view, const Json&)>& record) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool finished = end != std::string_view::npos;
    text.remove_prefix(finished ? end + 1 : text.size());
    ++number;
    const Json object = parse_json<Json>(line);
    if (!object.is_object()) {
      if (!finished) return true;
      throw data_error(
          "{}:{}: the line is not a JSON object, so the file is damaged; remove that line, or restore the "
          "file.",
          origin, number);
    }
    try {
      record(line, object);
    } catch (const Json::exception& error) {
      const std::string what = error.what();  // "[json.exception.NAME.NUMBER] sentence"
      throw data_error(
          "{}:{}: the record is not as mulligan writes it ({}); remove that line, or restore the file.",
          origin, number, what.substr(what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2));
    }
  }
  return false;
}

}  // namespace

bool read_json_lines(std::string_view text, const std::string& origin,
                     const std::function<void(const Json&)>& record) {
  return for_each_line(text, origin, [&](std::string_view, const Json& object) { record(object); });
}

void keep_json_lines(const std::filesystem::path& path, const std::function<bool(const Json&)>& keep) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  std::string kept;
  for_each_line(read_file(path), path.string(), [&](std::string_view line, const Json& object) {
    if (keep(object)) (kept += line) += '\n';
  });
  write_file_atomically(path, kept);
}

void add_score(Json& object, const Score& score) {
  object["val_loss_nats"] = score.val_loss_nats;
  object["val_bpb"] = score.val_bpb;
  object["val_tokens"] = score.tokens;
  object["val_bytes"] = score.bytes;
  object["seconds"] = score.seconds;
  if (!score.byte_rule.empty()) object["byte_rule"] = score.byte_rule;
  if (score.masked) object["masked"] = true;
}

Score read_score(const Json& object) {
  const auto number = [&](const char* key) {
    return number_or_null(object.value(key, Json())).value_or(std::numeric_limits<double>::quiet_NaN());
  };
  return {number("val_loss_nats"),      number("val_bpb"), object.at("val_tokens"),
          object.at("val_bytes"),       number("seconds"), object.value("masked", false),
          object.value("byte_rule", "")};
}

std::string event_name(const Json& object) {
  const auto name = object.find("event");
  return name != object.end() && name->is_string() ? name->get<std::string>() : "";
}

void JsonLinesWriter::append(std::string_view bytes) {
  if (const int reason = file_.write(bytes))
    throw run_error("the file '{}' cannot be written: {}.", path_.string(), std::strerror(reason));
}

}  // namespace mulligan
