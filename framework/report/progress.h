// Progress: the state of a long phase, its rate, and the time that it will still take.
//
//   Progress progress(&log, {.what = "encoding", .unit = "bytes", .total = corpus_bytes});
//   for (...) { ...; progress.advance(document.bytes); }
//
// Nothing is shown in a phase's first two seconds. After that a terminal shows one live line, which disappears with the object, also
// by an exception. Elsewhere plain lines come every ten seconds or ten per cent. If a phase cannot report its progress, the first
// line comes at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "framework/core/steady_time.h"
#include "framework/report/console.h"

namespace mulligan {

// The display of progress. RunLog is one. Calls may come from several threads.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // The abilities of the terminal of show_live(). If `live` is false, only progress_line() is called.
  virtual Terminal terminal() const = 0;
  virtual void show_live(std::string_view text) = 0;  // replaces the line before; no line break
  virtual void clear_live() = 0;
  virtual void progress_line(std::string_view text) = 0;  // for logs and pipes
};

struct ProgressPhase {
  std::string what;         // "encoding"
  std::string unit = {};    // "documents"; "bytes" become kB and MB; "": no figures
  double total = 0;         // to count in all; 0: not known
  double done = 0;          // part of `total` that an earlier process did, so that it is not part of the rate
  bool plain_lines = true;  // false: the phase writes lines of its own
  bool ticks = false;       // a thread redraws, for a call that does not know its progress
};

// The contents of a line. Seconds; negative: not known.
struct ProgressView {
  std::string what;
  std::optional<double> fraction;  // 0 to 1
  std::string count;               // "1,234 of 5,678 documents"
  std::string rate;                // "123 documents/s"
  double elapsed_seconds = 0;
  double left_seconds = -1;
};

// "encoding  =======----  52 %  1,234 of 5,678 documents  123 documents/s  0:12  0:11 left", at most one column less wide than the
// terminal. If it does not fit, parts are left out, the count first.
std::string live_line(const ProgressView& view, const Terminal& terminal);
// "encoding: 52 %, 1,234 of 5,678 documents, 123 documents/s, 0:12, 0:11 left"
std::string plain_line(const ProgressView& view);
// "1,234 of 5,678 documents", "12.3 of 45.6 MB"; without a total only the part that is done.
std::string count_text(double done, double total, std::string_view unit);
std::string rate_text(double per_second, std::string_view unit);  // "123 documents/s", "1.25 MB/s"
std::string clock_text(double seconds);                           // "0:12", "1:02:03"

class Progress {
 public:
  using Clock = std::function<double()>;  // as steady_seconds()

  // `sink` may be null (nothing is shown) and must outlive this object.
  Progress(ProgressSink* sink, ProgressPhase phase, Clock clock = steady_seconds);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Any thread. Cost: an addition and a read of the clock.
  void advance(double amount = 1);

  // Whether a call of set() would use its texts; if not, they need not be made.
  bool due() const;
  // One thread. The progress in all; optionally the phase's own words in place of count and rate, and its own estimate of the time
  // that is left.
  void set(double done, std::string words = {}, double left_seconds = -1);

 private:
  ProgressView view(double now) const;
  void show_if_due(double now);
  void tick(const std::stop_token& stop);

  ProgressSink* sink_;
  ProgressPhase phase_;
  Clock clock_;
  Terminal terminal_;
  double start_ = 0;
  std::atomic<double> done_;
  std::atomic<double> due_at_;  // time of the next update, seconds
  std::mutex showing_;          // guards the members below
  std::string words_;
  double told_left_ = -1;
  double line_at_ = 0;
  double line_fraction_ = 0;
  bool wrote_line_ = false;
  bool live_shown_ = false;
  std::condition_variable_any woken_;
  std::jthread ticker_;  // last: stops before the rest goes
};

}  // namespace mulligan
