// Files of one JSON object per line, which a killed process may have left with an unfinished last line.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mulligan {

// Hands every line's object to `record`, in order. A last line without its end that is not an object is left
// out and reported by the result, true; any other line that is none, or that `record` refuses by throwing
// nlohmann's exception (a missing field, a field of another type), is a data_error that names `origin` and
// the line's number.
bool read_json_lines(std::string_view text, const std::string& origin,
                     const std::function<void(const nlohmann::ordered_json&)>& record);

// Rewrites the file, if there is one, with the lines whose object `keep` wants. The end of a line that a
// killed process did not finish goes too; any other line that is not an object is a data_error naming file
// and line, and the file stays as it is.
void keep_json_lines(const std::filesystem::path& path,
                     const std::function<bool(const nlohmann::ordered_json&)>& keep);

// The member "event" of an object; "" where it is absent or no string.
std::string event_name(const nlohmann::ordered_json& object);

// JsonLinesWriter: a file of JSON objects, one a line, each on the disk's side of the process as soon as
// it is written.
class JsonLinesWriter {
 public:
  enum class Start { anew, append };
  // Throws run_error when the file cannot be opened.
  JsonLinesWriter(const std::filesystem::path& path, Start start);

  // `object`: JSON without a line break. Throws run_error when it cannot be written.
  void write(std::string_view object);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace mulligan
