#include "framework/report/progress.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

namespace mulligan {
namespace {

constexpr double quiet_seconds = 2;  // shorter phases show nothing
constexpr double redraw_seconds = 0.2;
constexpr double line_seconds = 10;
constexpr double line_fraction = 0.1;

}  // namespace

Progress::Progress(ProgressSink* sink, ProgressPhase phase, Clock clock)
    : sink_(sink), phase_(std::move(phase)), clock_(std::move(clock)), done_(phase_.done), due_at_(0) {
  if (!sink_) return;
  terminal_ = sink_->terminal();
  start_ = clock_();
  due_at_ = start_ + quiet_seconds;
  line_at_ = start_;
  if (phase_.total > 0) line_fraction_ = phase_.done / phase_.total;
  if (!phase_.ticks) return;
  try {
    ticker_ = std::jthread([this](const std::stop_token& stop) { tick(stop); });
  } catch (const std::system_error&) {
    // No thread to redraw the line: the phase goes on without it.
  }
}

Progress::~Progress() {
  if (ticker_.joinable()) {
    ticker_.request_stop();
    ticker_.join();
  }
  if (live_shown_) sink_->clear_live();
  if (!wrote_line_ || phase_.total <= 0 || line_fraction_ >= 1) return;
  try {  // plain lines that were begun end with the whole, unless an exception ended the phase before
    const ProgressView end = view(clock_());
    if (end.fraction == 1.0) sink_->progress_line(plain_line(end));
  } catch (const std::exception&) {  // a full disk, for example: what was counted is not lost with the line
  }
}

void Progress::advance(double amount) {
  if (!sink_) return;
  done_.fetch_add(amount, std::memory_order_relaxed);
  const double now = clock_();
  if (now < due_at_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(showing_, std::try_to_lock);
  if (lock) show_if_due(now);
}

bool Progress::due() const {
  return sink_ && clock_() >= due_at_.load(std::memory_order_relaxed);
}

void Progress::set(double done, std::string words, double left_seconds) {
  if (!sink_) return;
  done_.store(done, std::memory_order_relaxed);
  const double now = clock_();
  if (now < due_at_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(showing_);
  words_ = std::move(words);
  told_left_ = left_seconds;
  show_if_due(now);
}

void Progress::tick(const std::stop_token& stop) {
  std::unique_lock lock(showing_);
  while (!woken_.wait_for(lock, stop, std::chrono::duration<double>(redraw_seconds),
                          [&] { return stop.stop_requested(); })) {
    show_if_due(clock_());
  }
}

ProgressView Progress::view(double now) const {
  const double done = done_.load(std::memory_order_relaxed);
  ProgressView view;
  view.what = phase_.what;
  view.elapsed_seconds = now - start_;
  const double rate = view.elapsed_seconds > 0 ? (done - phase_.done) / view.elapsed_seconds : 0;
  if (phase_.total > 0) {
    view.fraction = std::clamp(done / phase_.total, 0.0, 1.0);
    if (rate > 0) view.left_seconds = std::max(0.0, phase_.total - done) / rate;
  }
  if (told_left_ >= 0) view.left_seconds = told_left_;
  if (!words_.empty()) {
    view.rate = words_;
  } else if (!phase_.unit.empty() && (done > 0 || phase_.total > 0)) {
    view.count = count_text(done, phase_.total, phase_.unit);
    view.rate = rate_text(rate, phase_.unit);
  }
  return view;
}

void Progress::show_if_due(double now) {
  if (now < due_at_.load(std::memory_order_relaxed)) return;
  due_at_.store(now + redraw_seconds, std::memory_order_relaxed);
  const ProgressView shown = view(now);
  if (terminal_.live) {
    sink_->show_live(live_line(shown, terminal_));
    live_shown_ = true;
  }
  if (!phase_.plain_lines) return;
  // A long phase needs fewer lines: after two hundred seconds, the time between two lines is 5 % of the time so far.
  const double since = now - line_at_;
  const double further = shown.fraction.value_or(0) - line_fraction_;
  // Of a phase that cannot say how far it is, one line soon says that it goes on.
  const bool first = !wrote_line_ && phase_.total <= 0 && since >= quiet_seconds;
  const bool due = first || since >= std::max(line_seconds, shown.elapsed_seconds / 20) ||
                   (since >= quiet_seconds && further >= line_fraction);
  if (!due) return;
  sink_->progress_line(plain_line(shown));
  wrote_line_ = true;
  line_at_ = now;
  line_fraction_ = shown.fraction.value_or(0);
}

}  // namespace mulligan
