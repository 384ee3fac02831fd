// RankOutput: what one rank writes, on its way to its log and to the terminal.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/own_file.h"
#include "framework/report/console.h"

namespace mulligan {

// OutputQueue: bytes on their way to a terminal or pipe that may not take them now.

// Never waits for the reader: the watch over the ranks must not stop because a pager does.
class OutputQueue {
 public:
  explicit OutputQueue(int descriptor) : descriptor_(descriptor) {}

  void put(std::string_view bytes);
  // Writes as much as is taken at once. After a failure all that comes is dropped.
  void write_some();

  bool empty() const { return waiting_.empty(); }
  // So much waits that nothing more should be read from the ranks.
  bool full() const { return waiting_.size() > (1 << 20); }
  int descriptor() const { return descriptor_; }
  const std::string& failure() const { return failure_; }  // the system's reason, "" for none

 private:
  int descriptor_;
  std::string waiting_, failure_;
};

// LaunchConsole: the terminal of `mulligan launch`, on which rank 0 writes as if it were alone and the other
// ranks write whole lines between.

enum class RankStream { output = 1, errors = 2 };

class LaunchConsole {
 public:
  LaunchConsole();

  bool is_terminal(RankStream stream) const;
  // Bytes of rank 0's own terminal, as they are: they may draw a live line.
  void raw(std::string_view bytes);
  // A whole line, without its line break.
  void line(RankStream stream, std::string_view text);
  // "launch: ..." on standard error: what the launcher itself does.
  void note(std::string_view text);

  OutputQueue& queue(RankStream stream) {
    return stream == RankStream::output || one_terminal_ ? output_ : errors_;
  }
  bool full() const { return output_.full() || errors_.full(); }
  bool empty() const { return output_.empty() && errors_.empty(); }
  void write_some();

 private:
  Terminal output_terminal_, errors_terminal_;
  bool one_terminal_;  // both streams end there, and one queue keeps their order
  OutputQueue output_, errors_;
  bool inside_line_ = false;  // of rank 0 on the terminal
};

class RankOutput {
 public:
  // `shown`: streams that the terminal shows (1, 2 or 3). Rank 0 is shown without "[rank 0] ". `log` has every line of the two
  // streams in order of arrival; an existing file is continued. Throws run_error where it cannot be opened.
  RankOutput(int rank, int shown, const std::filesystem::path& log, LaunchConsole& console);
  RankOutput(RankOutput&&) = default;

  // Takes over a descriptor to read from. `terminal`: the rank draws on a terminal of its own there.
  void add(Descriptor descriptor, RankStream stream, bool terminal);
  // The descriptors that may have something to read.
  std::vector<int> descriptors() const;
  // Reads what is there without waiting, and closes what has ended.
  void read();
  // Takes what is there for all that will come.
  void finish();
  void log_line(std::string_view text);
  void flush_log();
  const std::filesystem::path& log_path() const { return log_path_; }
  // Whether something could not be written, for example: the disk is full.
  bool log_failed() const { return log_failed_; }
  // The last line that mulligan printed as the error it ended with, without "mulligan: "; "" for none.
  const std::string& last_error() const { return last_error_; }

 private:
  struct Source {
    Descriptor descriptor;
    RankStream stream;
    bool terminal;
    std::string begun;  // of a line
  };
  bool read_some(Source& source);      // false: ended
  ssize_t read_piece(Source& source);  // as read(2)
  void take(Source& source, std::string_view bytes);
  void end_line(Source& source);

  int rank_, shown_;
  std::filesystem::path log_path_;
  OwnFile log_;
  std::string unlogged_;  // lines until flush_log()
  bool log_failed_ = false;
  LaunchConsole& console_;
  std::vector<Source> sources_;
  std::string last_error_;
};

// What a terminal shows of a line at last: without escape sequences, and without what was drawn over.
std::string line_at_last(std::string_view drawn);

}  // namespace mulligan
