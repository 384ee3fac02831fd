#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/core/descriptor.h"
#include "framework/core/stop_request.h"
#include "framework/ranks/control_channel.h"
#include "launch/launcher/guard.h"
#include "launch/launcher/local_ranks.h"

namespace mulligan {
namespace {

int make_wakeup() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) throw run_error("the system refuses an eventfd: {}.", std::strerror(errno));
  return descriptor;
}

void wake(int descriptor) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

LaunchEnvironment environment_of(const LaunchPlan& plan) {
  LaunchEnvironment environment;
  environment.rank = plan.node;
  environment.world_size = plan.nodes;
  environment.run_id = "launchers of " + plan.run_id;
  environment.host = plan.address;
  environment.ports = {static_cast<std::uint16_t>(plan.port)};
  environment.interface_name = process_environment()("MULLIGAN_INTERFACE").value_or("");
  return environment;
}

// The settings that all launchers must share, such as "--nproc-per-node 8 --max-restarts 3".
std::string common_settings(const LaunchPlan& plan) {
  return fmt::format("--nproc-per-node {} --max-restarts {}", plan.ranks.size(), plan.restarts);
}

Error among_launchers(const Error& error) {
  return Error(error.code(), fmt::format("among the launchers (a rank here is a node): {}", error.what()));
}

// NodeGroup: the launchers of the machines of one run among themselves.
//
// They meet as ranks do (framework/ranks/control_channel.h; a "rank" there is the launcher of a node), at plan.address and
// plan.port. Each learns at once of a failure or a signal on another node. All judge the same ends of the same attempt, so they
// decide alike without further messages. If a launcher is lost, the run ends on all nodes.
//
// No call but finish() waits: descriptor() is readable when there is something to take. A thread may be waiting for other machines at
// the end of the process; so an object is never destroyed.
class NodeGroup {
 public:
  // Starts to meet the others.
  explicit NodeGroup(const LaunchPlan& plan) : plan_(plan), wakeup_(make_wakeup()) {
    start_thread([this] {
      try {
        meet_others();
      } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        error_ = among_launchers(error);
      }
      wake(wakeup_);
    }).detach();
  }

  int descriptor() const { return wakeup_; }

  // Whether all launchers are there and start alike. Throws what meeting them threw: config_error, peer_failed.
  bool have_met() {
    const std::lock_guard lock(mutex_);
    if (error_) throw *error_;
    return channel_ != nullptr;
  }
  // What follows is about this attempt.
  // What other nodes said of this attempt may have come before.
  void begin_attempt(int attempt) {
    attempt_ = attempt;
    wake(wakeup_);
  }
  // Tells all nodes that the attempt is to stop: 0 for a failure, otherwise a signal.
  void tell(int news) {
    try {
      channel_->put(news_key(), std::to_string(news));
    } catch (const Error&) {
      return;  // a launcher is lost, which take_news() tells
    }
  }
  // Lines for people since the last call, what some node has told first, and whether a launcher is lost.
  struct News {
    std::vector<std::string> lines;
    std::optional<int> told;
    bool broken = false;
  };
  News take_news() {
    std::uint64_t ignored = 0;
    [[maybe_unused]] const ssize_t count = ::read(wakeup_, &ignored, sizeof ignored);
    const std::lock_guard lock(mutex_);
    News news{std::exchange(lines_, {}), {}, channel_ && channel_->verdict()};
    if (const auto told = channel_ ? channel_->find(news_key()) : std::nullopt) news.told = std::stoi(*told);
    return news;
  }
  // The ranks of this node have ended.
  void end_attempt(const AttemptEnd& end) {
    try {
      channel_->put(end_key(plan_.node), to_wire(end));
    } catch (const Error& error) {
      throw among_launchers(error);
    }
  }
  // The end on all nodes, once all have called end_attempt(). Throws peer_failed when a launcher is lost.
  std::optional<AttemptEnd> take_end() {
    const auto verdict = channel_->verdict();
    AttemptEnd all;
    for (int node = 0; node < plan_.nodes; ++node) {
      const auto text = channel_->find(end_key(node));
      if (!text && verdict) throw among_launchers(verdict->error_of(plan_.node));
      if (!text) return std::nullopt;
      auto one = from_wire<AttemptEnd>(*text);
      if (all.signal == 0) all.signal = one.signal;
      for (RankEnd& rank : one.ranks) all.ranks.push_back(std::move(rank));
    }
    std::ranges::stable_sort(all.ranks, {}, &RankEnd::seconds);
    return all;
  }
  // The last call, after an end that all have judged: waits until they have come here, too.
  void finish() {
    try {
      channel_->finish();
    } catch (const Error&) {
      return;  // a launcher that was lost after the end changes nothing
    }
  }

 private:
  void meet_others() {
    ControlOptions options = control_options(process_environment());
    options.error_file.clear();
    options.watchdog = 0;
    // A launcher waits for as long as its ranks work.
    options.wedged = options.first_step = options.slow = std::numeric_limits<double>::infinity();
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      wake(wakeup_);
    };
    options.news = [this] { wake(wakeup_); };
    auto channel = meet(environment_of(plan_), std::move(options));
    const std::vector<std::string> settings = channel->all_gather(common_settings(plan_));
    for (std::size_t node = 1; node < settings.size(); ++node) {
      if (settings[node] == settings[0]) continue;
      throw config_error("node 0 was launched with {}, node {} with {}; give all nodes the same.",
                         settings[0], node, settings[node]);
    }
    const std::lock_guard lock(mutex_);
    channel_ = std::move(channel);
  }
  std::string news_key() const { return fmt::format("news of attempt {}", attempt_); }
  std::string end_key(int node) const { return fmt::format("end of attempt {} on node {}", attempt_, node); }

  const LaunchPlan plan_;
  const int wakeup_;
  int attempt_ = 0;
  std::mutex mutex_;                         // guards what follows
  std::unique_ptr<ControlChannel> channel_;  // null until all have met; then it stays
  std::optional<Error> error_;
  std::vector<std::string> lines_;
};

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
    group_ = new NodeGroup(plan_);
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
