// RunLog: the lines a person reads, on the console and in log.txt, and one live progress line on a terminal.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace mulligan {

class RunLog {
 public:
  // `console` may be null; an empty `file` means no file; `append` keeps what the file holds. Throws
  // run_error when the file cannot be made.
  RunLog(std::FILE* console, const std::filesystem::path& file, bool append = false);

  // A line, written at once to both.
  void line(std::string_view text);
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    line(fmt::format(format, std::forward<Args>(args)...));
  }

  // Whether progress() shows anything: the console is a terminal.
  bool live() const { return live_; }
  // Replaces the live line. The next line() clears it.
  void progress(std::string_view text);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void clear_progress();

  std::FILE* console_;
  std::unique_ptr<std::FILE, Close> file_;
  bool live_;
  bool progress_shown_ = false;
};

}  // namespace mulligan
