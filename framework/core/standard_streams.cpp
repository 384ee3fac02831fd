#include "framework/core/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace mulligan {

void open_missing_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number, which is this one: those below are open.
    [[maybe_unused]] const int opened = ::open("/dev/null", number == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

std::string output_failure() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) != 0) return std::strerror(errno);
  if (!failed_before) return {};
  // What could not be written was dropped, so ask the system again for its reason.
  if (::write(STDOUT_FILENO, "\n", 1) < 0) return std::strerror(errno);
  return "an earlier line could not be written";
}

bool output_has_no_reader() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

}  // namespace mulligan
