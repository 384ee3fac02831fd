// Files of one JSON object per line. A killed process may leave an unfinished last line.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "framework/core/own_file.h"
#include "framework/core/score.h"

namespace mulligan {

// Passes every line's object to `record`, in order. An unfinished last line that is not an object is left out, and the result is
// true. Any other line that is no object is a data_error that names `origin` and the line's number. So is a line for which `record`
// throws nlohmann's exception (a missing field, a field of another type).
bool read_json_lines(std::string_view text, const std::string& origin,
                     const std::function<void(const nlohmann::ordered_json&)>& record);

// Rewrites the file, if there is one, with the lines whose object `keep` wants. The end of a line that a
// killed process did not finish goes too; any other line that is not an object is a data_error naming file
// and line, and the file stays as it is.
void keep_json_lines(const std::filesystem::path& path,
                     const std::function<bool(const nlohmann::ordered_json&)>& keep);

// The members of an object for a score: "val_loss_nats", "val_bpb", "val_tokens", "val_bytes", "seconds", and "byte_rule" and "masked"
// where they say something. A number that is not finite is null, and an absent one NaN. Reading throws nlohmann's exception for a member
// of another type.
void add_score(nlohmann::ordered_json& object, const Score& score);
Score read_score(const nlohmann::ordered_json& object);

// The member "event" of an object; "" if it is absent or no string.
std::string event_name(const nlohmann::ordered_json& object);

// JsonLinesWriter: a file of JSON objects, one per line. Each is passed to the system as soon as it is written.
class JsonLinesWriter {
 public:
  using Start = FileStart;
  // Throws run_error if the file cannot be opened.
  JsonLinesWriter(const std::filesystem::path& path, Start start) : path_(path), file_(path, start) {}

  // `object`: JSON without a line break. Throws run_error if it cannot be written.
  void write(std::string_view object) { append(std::string(object) + "\n"); }
  // The same for any bytes.
  void append(std::string_view bytes);

 private:
  std::filesystem::path path_;
  OwnFile file_;
};

}  // namespace mulligan
