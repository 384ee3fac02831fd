#include "launch/launcher/rank_output.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

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

namespace {

constexpr std::size_t kLongestLine = 1 << 16;  // longer ones are cut into several
constexpr int kPiecesAtOnce = 16;              // so that no rank keeps the others waiting

std::string_view without_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '.')) line.remove_suffix(1);
  return line;
}

}  // namespace

RankOutput::RankOutput(int rank, int shown, const std::filesystem::path& log, LaunchConsole& console)
    : rank_(rank), shown_(shown), log_path_(log), log_(log, FileStart::append), console_(console) {}

void RankOutput::log_line(std::string_view text) {
  (unlogged_ += text) += '\n';
}

void RankOutput::flush_log() {
  if (log_.write(std::exchange(unlogged_, {})) != 0) log_failed_ = true;
}

void RankOutput::add(Descriptor descriptor, RankStream stream, bool terminal) {
  sources_.push_back({std::move(descriptor), stream, terminal, {}});
}

std::vector<int> RankOutput::descriptors() const {
  std::vector<int> all;
  for (const Source& source : sources_) all.push_back(source.descriptor.number());
  return all;
}

void RankOutput::read() {
  std::erase_if(sources_, [this](Source& source) {
    if (read_some(source)) return false;
    if (!source.begun.empty()) end_line(source);
    return true;
  });
  flush_log();
}

void RankOutput::finish() {
  for (Source& source : sources_) {
    while (read_piece(source) > 0) continue;
    if (!source.begun.empty()) end_line(source);
  }
  sources_.clear();
  flush_log();
}

bool RankOutput::read_some(Source& source) {
  for (int piece = 0; piece < kPiecesAtOnce; ++piece) {
    const ssize_t count = read_piece(source);
    if (count == 0) return false;
    // EIO: the last process on the other side of a terminal has gone.
    if (count < 0) return errno == EAGAIN || errno == EINTR;
  }
  return true;
}

ssize_t RankOutput::read_piece(Source& source) {
  char bytes[4096];
  const ssize_t count = ::read(source.descriptor.number(), bytes, sizeof bytes);
  if (count > 0) take(source, {bytes, static_cast<std::size_t>(count)});
  return count;
}

void RankOutput::take(Source& source, std::string_view bytes) {
  if (source.terminal && (shown_ & static_cast<int>(source.stream)) != 0) console_.raw(bytes);
  for (const char byte : bytes) {
    if (byte == '\n') {
      end_line(source);
    } else {
      source.begun += byte;
      if (source.begun.size() >= kLongestLine) end_line(source);
    }
  }
}

void RankOutput::end_line(Source& source) {
  const std::string line = source.terminal ? line_at_last(source.begun) : source.begun;
  source.begun.clear();
  log_line(line);
  if (line.starts_with("mulligan: ")) last_error_ = without_end(line.substr(10));
  if (source.terminal || (shown_ & static_cast<int>(source.stream)) == 0) return;
  console_.line(source.stream, rank_ == 0 ? line : fmt::format("[rank {}] {}", rank_, line));
}

std::string line_at_last(std::string_view drawn) {
  if (drawn.ends_with('\r')) drawn.remove_suffix(1);
  if (const std::size_t start = drawn.rfind('\r'); start != std::string_view::npos)
    drawn.remove_prefix(start + 1);
  std::string line;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (drawn[i] != '\x1b') {
      line += drawn[i];
      continue;
    }
    // ESC [ ... letter
    if (i + 1 < drawn.size() && drawn[i + 1] == '[') ++i;
    while (i + 1 < drawn.size() && (drawn[i + 1] < '@' || drawn[i + 1] > '~')) ++i;
    ++i;
  }
  return line;
}

}  // namespace mulligan
