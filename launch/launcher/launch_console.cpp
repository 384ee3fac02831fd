#include "launch/launcher/launch_console.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mulligan {
namespace {

bool are_one_terminal() {
  struct stat output {
  }, errors{};
  return ::isatty(STDOUT_FILENO) && ::fstat(STDOUT_FILENO, &output) == 0 &&
         ::fstat(STDERR_FILENO, &errors) == 0 && S_ISCHR(errors.st_mode) && output.st_rdev == errors.st_rdev;
}

}  // namespace

LaunchConsole::LaunchConsole()
    : output_terminal_(terminal_of(stdout)),
      errors_terminal_(terminal_of(stderr)),
      one_terminal_(are_one_terminal()),
      output_(STDOUT_FILENO),
      errors_(STDERR_FILENO) {}

bool LaunchConsole::is_terminal(RankStream stream) const {
  return (stream == RankStream::output ? output_terminal_ : errors_terminal_).live;
}

void LaunchConsole::raw(std::string_view bytes) {
  if (bytes.empty()) return;
  output_.put(bytes);
  inside_line_ = bytes.back() != '\n';
}

void LaunchConsole::line(RankStream stream, std::string_view text) {
  // Rank 0 draws its live line again when it has news.
  const char* erase = inside_line_ && is_terminal(stream) ? "\r\x1b[2K" : "";
  if (inside_line_ && is_terminal(stream)) inside_line_ = false;
  queue(stream).put(fmt::format("{}{}\n", erase, text));
}

void LaunchConsole::note(std::string_view text) {
  line(RankStream::errors, fmt::format("launch: {}", text));
}

void LaunchConsole::write_some() {
  output_.write_some();
  errors_.write_some();
}

}  // namespace mulligan
