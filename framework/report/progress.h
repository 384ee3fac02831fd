// Progress: how far a long phase is, how fast it goes and how long it will still take.
//
//   Progress progress(&log, {.what = "encoding", .unit = "bytes", .total = corpus_bytes});
//   for (...) { ...; progress.advance(document.bytes); }
//
// Nothing is shown in a phase's first two seconds. Then a terminal shows one live line, which goes when the
// object does, also by an exception; elsewhere plain lines come every ten seconds or ten per cent, and
// the first one at once where a phase cannot say how far it is.
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

#include "framework/report/console.h"

namespace mulligan {

// Where progress is shown. RunLog is one. Calls may come from several threads.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // The terminal that show_live() draws on; its `live` false: only progress_line() is called.
  virtual Terminal terminal() const = 0;
  virtual void show_live(std::string_view text) = 0;  // in place of the line before; no line break
  virtual void clear_live() = 0;
  virtual void progress_line(std::string_view text) = 0;  // for logs and pipes
};

struct ProgressPhase {
  std::string what;         // "encoding"
  std::string unit = {};    // of what is counted: "documents"; "bytes" become kB and MB; "": no figures
  double total = 0;         // to be counted in all; 0: not known
  double done = 0;          // part of `total` that an earlier process did, so that it is not part of the rate
  bool plain_lines = true;  // false: the phase writes lines of its own
  bool ticks = false;       // redraws by a thread, for a call that does not know how far it is
};

// What a line says. Seconds; negative: not known.
struct ProgressView {
  std::string what;
  std::optional<double> fraction;  // 0 to 1
  std::string count;               // "1,234 of 5,678 documents"
  std::string rate;                // "123 documents/s"
  double elapsed_seconds = 0;
  double left_seconds = -1;
};

// "encoding  ━━━━━━━────  52 %  1,234 of 5,678 documents  123 documents/s  0:12  0:11 left", never wider than
// one column less than the terminal has: what does not fit is left out, the count first.
std::string live_line(const ProgressView& view, const Terminal& terminal);
// "encoding: 52 %, 1,234 of 5,678 documents, 123 documents/s, 0:12, 0:11 left"
std::string plain_line(const ProgressView& view);
// "1,234 of 5,678 documents", "12.3 of 45.6 MB"; without a total only what is done.
std::string count_text(double done, double total, std::string_view unit);
std::string rate_text(double per_second, std::string_view unit);  // "123 documents/s", "1.25 MB/s"
std::string clock_text(double seconds);                           // "0:12", "1:02:03"

class Progress {
 public:
  using Clock = std::function<double()>;  // seconds that never go back, from any origin
  static double steady_seconds();

  // `sink` may be null (nothing is shown) and must outlive this object.
  Progress(ProgressSink* sink, ProgressPhase phase, Clock clock = steady_seconds);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Any thread. Cost: an addition and a look at the clock.
  void advance(double amount = 1);

  // Whether a call of set() would look further than at the clock: words need not be made before.
  bool due() const;
  // One thread. How far the phase is in all; words of the phase's own in place of count and rate; the time
  // that is left where the phase knows better.
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
  std::atomic<double> due_at_;  // the next time worth a look, seconds
  std::mutex showing_;          // guards what follows
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
