#include "framework/report/run_log.h"

#include <cstring>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

constexpr const char* erase_line = "\r\x1b[2K";
constexpr std::string_view warning_head = "warning:";

void write_to(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace

RunLog::RunLog(const ConsoleOptions& options, const std::filesystem::path& file, bool append)
    : options_(options), terminal_(options.quiet ? Terminal{} : terminal_of(options.console)) {
  if (!file.empty()) open_file(file, append);
}

void RunLog::open_file(const std::filesystem::path& file, bool append) {
  const std::lock_guard lock(writing_);
  file_ = OwnFile(file, append ? FileStart::append : FileStart::anew);
  path_ = file;
  write_error_ = 0;
  write_to_file(std::exchange(kept_, {}));
  keeps_ = false;
}

void RunLog::write_to_file(std::string_view text) {
  const int reason = file_.write(text);
  if (write_error_ == 0) write_error_ = reason;
}

void RunLog::require_written() {
  const std::lock_guard lock(writing_);
  if (write_error_ == 0) return;
  throw run_error("the log '{}' cannot be written: {}; make room for it, or choose another run.directory.",
                  path_.string(), std::strerror(write_error_));
}

void RunLog::line(std::string_view text) {
  write(text, !options_.quiet || text.starts_with(warning_head));
}

void RunLog::detail(std::string_view text) {
  write(text, false);
}

void RunLog::result(std::string_view text) {
  write(text, true);
}

void RunLog::progress_line(std::string_view text) {
  write(text, !options_.quiet && !terminal_.live);
}

void RunLog::write(std::string_view unsafe_text, bool on_console) {
  const std::string shown = printable(unsafe_text, LineBreaks::kept);
  const std::string_view text = shown;
  const std::lock_guard lock(writing_);
  if (on_console && options_.console) write_to_console(text);
  if (keeps_) (kept_ += text) += '\n';
  if (file_.is_open()) write_to_file(std::string(text) + "\n");
}

void RunLog::write_to_console(std::string_view text) {
  erase_live();
  if (terminal_.colour && text.starts_with(warning_head)) {
    write_to(options_.console, toned(warning_head, Tone::warning, true));
    write_to(options_.console, text.substr(warning_head.size()));
  } else {
    write_to(options_.console, text);
  }
  write_to(options_.console, "\n");
  std::fflush(options_.console);
}

void RunLog::show_live(std::string_view text) {
  const std::lock_guard lock(writing_);
  if (!terminal_.live) return;
  write_to(options_.console, erase_line);
  write_to(options_.console, text);
  std::fflush(options_.console);
  live_shown_ = true;
}

void RunLog::clear_live() {
  const std::lock_guard lock(writing_);
  erase_live();
}

void RunLog::erase_live() {
  if (!live_shown_) return;
  write_to(options_.console, erase_line);
  std::fflush(options_.console);
  live_shown_ = false;
}

}  // namespace mulligan
