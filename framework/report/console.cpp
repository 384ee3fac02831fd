#include "framework/report/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "framework/core/printable.h"

namespace mulligan {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Of each Tone.
constexpr const char* codes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};

void print_sentence(std::string_view head, Tone tone, std::string_view sentence) {
  std::fflush(stdout);
  const std::string text =
      fmt::format("{} {}\n", toned(head, tone, terminal_of(stderr).colour), printable(sentence));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

Terminal terminal_of(std::FILE* stream) {
  Terminal terminal;
  if (!stream || !isatty(fileno(stream))) return terminal;
  const std::string_view term = environment("TERM");
  terminal.live = !term.empty() && term != "dumb";
  terminal.colour = terminal.live && environment("NO_COLOR").empty();
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.columns = size.ws_col;
  return terminal;
}

std::string toned(std::string_view text, Tone tone, bool colour) {
  if (!colour || tone == Tone::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", codes[static_cast<int>(tone)], text);
}

void print_error(std::string_view sentence) {
  print_sentence("mulligan:", Tone::error, sentence);
}

void print_warning(std::string_view sentence) {
  print_sentence("warning:", Tone::warning, sentence);
}

}  // namespace mulligan
