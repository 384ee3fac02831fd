#include "launch/launcher/rank_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "framework/core/own_file.h"

namespace mulligan {
namespace {

constexpr std::size_t kLongestLine = 1 << 16;  // longer ones are cut into several
constexpr int kPiecesAtOnce = 16;              // so that no rank keeps the others waiting

std::string_view without_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '.')) line.remove_suffix(1);
  return line;
}

}  // namespace

RankLog::RankLog(const std::filesystem::path& path)
    : path_(path), file_(open_own_file(path, FileStart::append)) {}

void RankLog::line(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() &&
                       std::fputc('\n', file_.get()) != EOF;
  if (!written) failed_ = true;
}

void RankLog::flush() {
  if (std::fflush(file_.get()) != 0) failed_ = true;
}

RankOutput::~RankOutput() {
  for (const Source& source : sources_) ::close(source.descriptor);
}

void RankOutput::add(int descriptor, RankStream stream, bool terminal) {
  sources_.push_back({descriptor, stream, terminal, {}});
}

std::vector<int> RankOutput::descriptors() const {
  std::vector<int> all;
  for (const Source& source : sources_) all.push_back(source.descriptor);
  return all;
}

void RankOutput::read() {
  std::erase_if(sources_, [this](Source& source) {
    if (read_some(source)) return false;
    if (!source.begun.empty()) end_line(source);
    ::close(source.descriptor);
    return true;
  });
  log_.flush();
}

void RankOutput::finish() {
  for (Source& source : sources_) {
    while (true) {
      char bytes[4096];
      const ssize_t count = ::read(source.descriptor, bytes, sizeof bytes);
      if (count <= 0) break;
      take(source, {bytes, static_cast<std::size_t>(count)});
    }
    if (!source.begun.empty()) end_line(source);
    ::close(source.descriptor);
  }
  sources_.clear();
  log_.flush();
}

bool RankOutput::read_some(Source& source) {
  for (int piece = 0; piece < kPiecesAtOnce; ++piece) {
    char bytes[4096];
    const ssize_t count = ::read(source.descriptor, bytes, sizeof bytes);
    if (count == 0) return false;
    // EIO: the last process on the other side of a terminal has gone.
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    take(source, {bytes, static_cast<std::size_t>(count)});
  }
  return true;
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
  log_.line(line);
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
