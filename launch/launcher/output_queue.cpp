#include "launch/launcher/output_queue.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace mulligan {

void OutputQueue::put(std::string_view bytes) {
  if (failure_.empty()) waiting_ += bytes;
}

void OutputQueue::write_some() {
  std::size_t written = 0;
  while (written < waiting_.size() && failure_.empty()) {
    // The descriptor is shared with others, so it cannot be made non-blocking; a pipe that is ready takes
    // PIPE_BUF bytes without waiting.
    pollfd ready{descriptor_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1) break;
    const std::size_t piece = std::min<std::size_t>(waiting_.size() - written, PIPE_BUF);
    const ssize_t count = ::write(descriptor_, waiting_.data() + written, piece);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (count < 0) failure_ = std::strerror(errno);
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  waiting_.erase(0, failure_.empty() ? written : waiting_.size());
}

}  // namespace mulligan
