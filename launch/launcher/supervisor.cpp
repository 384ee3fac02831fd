#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "framework/core/descriptor.h"
#include "framework/core/stop_request.h"
#include "launch/launcher/guard.h"
#include "launch/launcher/local_ranks.h"
#include "launch/launcher/node_group.h"

namespace mulligan {
namespace {

class Supervisor {
 public:
  Supervisor(const LaunchPlan& plan, int guard)
      : plan_(plan), guard_(guard), ranks_(plan, console_), children_(watch_children()) {}
  LaunchOutcome run() {
    if (plan_.nodes > 1) meet_launchers();
    for (int attempt = 0;; ++attempt) {
      if (group_) group_->begin_attempt(attempt);
      ranks_.start(attempt, group_ ? plan_.port + 1 : free_port());
      if (attempt == 0) tell_start();
      // One that came between two attempts.
      if (signal_ != 0) ranks_.forward(signal_);
      if (signal_ != 0 && group_) group_->tell(signal_);
      while (ranks_.running()) turn(ranks_.act_when_due());
      kill_descendants();
      const LaunchOutcome outcome = judge(end_on_all_nodes());
      const bool again = outcome.worth_restarting && attempt < plan_.restarts;
      if (!again) return finish(outcome);
      console_.note(fmt::format("{} Restart {} of {}.", outcome.sentence, attempt + 1, plan_.restarts));
    }
  }

  // The terminal or pipe may still be taking what the ranks wrote.
  void flush() {
    while (!console_.empty() && !given_up_) turn(-1);
  }

 private:
  static Descriptor watch_children() {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    Descriptor descriptor(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    if (descriptor.number() < 0) throw run_error("the system refuses a signalfd: {}.", std::strerror(errno));
    return descriptor;
  }

  void meet_launchers() {
    group_ = &NodeGroup::make(plan_);
    while (!group_->have_met()) {
      turn(-1);
      if (signal_ == 0) continue;
      throw Error(
          ExitCode::interrupted,
          fmt::format("stopped by {} before the launchers of all nodes were there.", signal_name(signal_)));
    }
  }

  AttemptEnd end_on_all_nodes() {
    const AttemptEnd own{signal_, ranks_.ends()};
    if (!group_) return own;
    group_->end_attempt(own);
    while (true) {
      if (auto all = group_->take_end()) return *all;
      turn(-1);
      if (given_up_) throw Error(ExitCode::interrupted, "stopped by a second signal; all ranks were killed.");
    }
  }

  void take_news() {
    const NodeGroup::News news = group_->take_news();
    for (const std::string& line : news.lines) console_.note(line);
    if (news.told && *news.told != 0) pass_on(*news.told);
    if (news.broken || news.told == 0) ranks_.stop();
  }

  void tell_start() {
    console_.note(fmt::format("ranks {} to {} of {}, logs in {}", plan_.ranks.front().rank,
                              plan_.ranks.back().rank, plan_.world_size,
                              (std::filesystem::path(plan_.logs) / "attempt_0").string()));
  }

  // Waits for something to happen, at most so long, and deals with it.
  void turn(int milliseconds) {
    std::vector<pollfd> waited = {{guard_, POLLIN, 0}, {children_.number(), POLLIN, 0}};
    for (const RankStream stream : {RankStream::output, RankStream::errors}) {
      const OutputQueue& queue = console_.queue(stream);
      if (!queue.empty()) waited.push_back({queue.descriptor(), POLLOUT, 0});
    }
    if (group_) waited.push_back({group_->descriptor(), POLLIN, 0});
    ranks_.watch(waited);
    ::poll(waited.data(), waited.size(), milliseconds);
    take_signals();
    if (group_) take_news();
    ranks_.read();
    signalfd_siginfo ignored{};
    while (::read(children_.number(), &ignored, sizeof ignored) > 0) continue;
    const bool failed_before = ranks_.failed();
    ranks_.reap();
    if (group_ && ranks_.failed() && !failed_before) group_->tell(0);
    console_.write_some();
  }

  void take_signals() {
    while (const int signal = next_signal(guard_)) {
      if (signal_ == 0) {
        pass_on(signal);
        if (group_ && ranks_.running()) group_->tell(signal);
      } else {
        given_up_ = true;
        ranks_.kill_all();
      }
    }
  }

  void pass_on(int signal) {
    if (signal_ != 0) return;
    signal_ = signal;
    console_.note(fmt::format("{} is passed on to all ranks; a second one kills them.", signal_name(signal)));
    ranks_.forward(signal);
  }

  LaunchOutcome finish(LaunchOutcome outcome) {
    flush();
    if (group_) group_->finish();
    for (const RankStream stream : {RankStream::output, RankStream::errors}) {
      const std::string& failure = console_.queue(stream).failure();
      if (failure.empty() || outcome.code != 0) continue;
      outcome = {static_cast<int>(ExitCode::run_failed),
                 fmt::format("the ranks did their work, but not all of their output could be written to "
                             "standard {}: {}; it is in their logs.",
                             stream == RankStream::output ? "output" : "error", failure)};
    }
    return outcome;
  }

  const LaunchPlan& plan_;
  const int guard_;
  LaunchConsole console_;
  LocalRanks ranks_;
  NodeGroup* group_ = nullptr;  // where there are several nodes
  Descriptor children_;
  int signal_ = 0;  // the first that asked for an end
  bool given_up_ = false;
};

}  // namespace

LaunchOutcome supervise(const LaunchPlan& plan, int guard) {
  Supervisor supervisor(plan, guard);
  try {
    return supervisor.run();
  } catch (const Error&) {
    kill_descendants();
    supervisor.flush();
    throw;
  }
}

}  // namespace mulligan
