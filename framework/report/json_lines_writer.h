// JsonLinesWriter: a file of JSON objects, one a line, each on the disk's side of the process as soon as
// it is written.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace mulligan {

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
