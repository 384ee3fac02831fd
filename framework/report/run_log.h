// RunLog: the lines for people, on the console and in log.txt, and one live progress line on a terminal.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "framework/core/own_file.h"
#include "framework/report/console.h"
#include "framework/report/progress.h"

namespace mulligan {

class RunLog : public ProgressSink {
 public:
  // An empty `file` means no file; `append` keeps the file's contents. Throws run_error if the file cannot be made.
  RunLog(const ConsoleOptions& options, const std::filesystem::path& file, bool append = false);
  // For a file that is opened later, when the run can no longer be refused. Lines until then are kept for it.
  void keep_lines() { keeps_ = true; }
  // Opens the file and writes the kept lines. Throws run_error if it cannot be made.
  void open_file(const std::filesystem::path& file, bool append);
  // Throws run_error if a line was not written to the file. line() never throws, because it also reports failures.
  void require_written();

  // Writes a line at once to both. A quiet console shows only lines that start with "warning: "; on a terminal that word is in
  // colour.
  void line(std::string_view text);
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    line(fmt::format(format, std::forward<Args>(args)...));
  }
  // Writes to the file alone.
  void detail(std::string_view text);
  // Writes the command's result, also to a quiet console.
  void result(std::string_view text);

  // ProgressSink. progress_line() goes to the file, and to a console without live lines.
  Terminal terminal() const override { return terminal_; }
  void show_live(std::string_view text) override;
  void clear_live() override;
  void progress_line(std::string_view text) override;

 private:
  void write(std::string_view unsafe_text, bool on_console);
  void write_to_console(std::string_view text);
  void write_to_file(std::string_view text);
  void erase_live();

  ConsoleOptions options_;
  std::filesystem::path path_;
  OwnFile file_;
  int write_error_ = 0;  // errno of the first write to the file that failed
  bool keeps_ = false;   // lines, for a file to come
  std::string kept_;
  Terminal terminal_;
  std::mutex writing_;
  bool live_shown_ = false;
};

}  // namespace mulligan
