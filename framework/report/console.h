// The console: its abilities, and the lines of a command that go there.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace mulligan {

// The destination of lines for people. With `console` null nothing is printed, but a log file is still written.
struct ConsoleOptions {
  std::FILE* console = stdout;
  bool quiet = false;  // results and warnings only: neither progress nor notes
};

// The abilities of a stream besides plain lines.
struct Terminal {
  bool live = false;    // a line may be redrawn: a terminal that is not dumb
  bool colour = false;  // the same, and NO_COLOR is not set
  int columns = 80;
};

// Asks the stream and the environment (TERM, NO_COLOR). `stream` may be null.
Terminal terminal_of(std::FILE* stream);

enum class Tone { plain, strong, faint, good, warning, error };
// `text` in the colours of `tone` if `colour` is set, else unchanged.
std::string toned(std::string_view text, Tone tone, bool colour);

// Prints one sentence to stderr after "mulligan: " or "warning: ", in colour on a terminal. Flushes stdout first, so
// that the two streams stay in order.
void print_error(std::string_view sentence);
void print_warning(std::string_view sentence);

}  // namespace mulligan
