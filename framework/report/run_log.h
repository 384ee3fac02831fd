// RunLog: the lines a person reads, on the console and in log.txt, and one live progress line on a terminal.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/report/console.h"
#include "framework/report/progress.h"

namespace mulligan {

class RunLog : public ProgressSink {
 public:
  // An empty `file` means no file; `append` keeps what the file holds. Throws run_error when the file
  // cannot be made.
  RunLog(const ConsoleOptions& options, const std::filesystem::path& file, bool append = false);
  // Shows warnings once more that have scrolled far up the console.
  ~RunLog() override;
  // For a file that is opened later, once nothing can be refused any more: lines until then are kept for it.
  void keep_lines() { keeps_ = true; }
  // Opens the file and writes the lines that were kept. Throws run_error when it cannot be made.
  void open_file(const std::filesystem::path& file, bool append);
  // Throws run_error where a line did not get into the file. line() never throws: it also reports failures.
  void require_written();

  // A line, written at once to both. A quiet console shows only those that start with "warning: "; on a
  // terminal that word is in colour.
  void line(std::string_view text);
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    line(fmt::format(format, std::forward<Args>(args)...));
  }
  // For the file alone.
  void detail(std::string_view text);
  // What the command was started for: also on a quiet console.
  void result(std::string_view text);

  // ProgressSink. progress_line() goes to the file, and to a console without live lines.
  Terminal terminal() const override { return terminal_; }
  void show_live(std::string_view text) override;
  void clear_live() override;
  void progress_line(std::string_view text) override;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(std::string_view unsafe_text, bool on_console);
  void write_to_console(std::string_view text);
  void repeat_warnings();
  void write_to_file(std::string_view text);
  void erase_live();

  ConsoleOptions options_;
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  int write_error_ = 0;  // errno of the first write to the file that failed
  bool keeps_ = false;   // lines, for a file to come
  std::string kept_;
  Terminal terminal_;
  std::mutex writing_;
  bool live_shown_ = false;
  std::size_t console_lines_ = 0;                              // written so far
  std::vector<std::pair<std::size_t, std::string>> warnings_;  // with the console's lines before each
};

}  // namespace mulligan
