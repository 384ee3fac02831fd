#include "framework/report/run_log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "framework/core/error.h"

namespace mulligan {
namespace {

constexpr const char* erase_line = "\r\x1b[2K";

void write(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace

RunLog::RunLog(std::FILE* console, const std::filesystem::path& file, bool append)
    : console_(console), live_(console && isatty(fileno(console))) {
  if (file.empty()) return;
  file_.reset(std::fopen(file.c_str(), append ? "a" : "w"));
  if (!file_)
    throw run_error("the log file '{}' cannot be written: {}.", file.string(), std::strerror(errno));
}

void RunLog::line(std::string_view text) {
  clear_progress();
  for (std::FILE* target : {console_, file_.get()}) {
    if (!target) continue;
    write(target, text);
    write(target, "\n");
    std::fflush(target);
  }
}

void RunLog::progress(std::string_view text) {
  if (!live_) return;
  write(console_, erase_line);
  write(console_, text);
  std::fflush(console_);
  progress_shown_ = true;
}

void RunLog::clear_progress() {
  if (!progress_shown_) return;
  write(console_, erase_line);
  progress_shown_ = false;
}

}  // namespace mulligan
