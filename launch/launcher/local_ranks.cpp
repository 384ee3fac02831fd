#include "launch/launcher/local_ranks.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "framework/core/stop_request.h"
#include "framework/report/machine.h"

namespace mulligan {

void LocalRanks::start(int attempt, int port) {
  const auto folder = std::filesystem::path(plan_.logs) / fmt::format("attempt_{}", attempt);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw run_error("the folder '{}' cannot be made: {}; choose another with --log-dir.", folder.string(),
                    failed.message());
  }
  ranks_.clear();
  ends_.clear();
  terminate_at_.reset();
  kill_at_.reset();
  started_ = Clock::now();
  for (const RankPlan& rank : plan_.ranks) {
    const int shown = (rank.rank == 0 ? 3 : plan_.tee) & ~plan_.redirects;
    RankOutput output(rank.rank, shown, folder / fmt::format("rank_{:04}.log", rank.rank), console_);
    output.log_line(fmt::format("# {}: rank {} of {} on {}, attempt {}, run {}", utc_time(std::time(nullptr)),
                                rank.rank, plan_.world_size, plan_.host, attempt, plan_.run_id));
    output.flush_log();
    const pid_t process =
        start_rank(plan_, rank, rank_environment(rank_variables(plan_, rank, attempt, port)), console_,
                   rank.rank == 0 && shown == 3, output);
    ranks_.push_back({rank.rank, process, std::move(output)});
  }
}

void LocalRanks::send(int signal) {
  for (Rank& rank : ranks_) {
    if (rank.process == 0) continue;
    rank.stopped = true;
    ::kill(rank.process, signal);
    // A stopped process (SIGSTOP) would not notice.
    if (signal != SIGKILL) ::kill(rank.process, SIGCONT);
  }
}

void LocalRanks::forward(int signal) {
  send(signal);
  terminate_at_.reset();
  if (!kill_at_) kill_at_ = Clock::now() + kSaving;
}

void LocalRanks::stop() {
  if (!terminate_at_ && !kill_at_) terminate_at_ = Clock::now() + kOwnVerdict;
}

void LocalRanks::kill_all() {
  for (Rank& rank : ranks_) {
    if (rank.process == 0) continue;
    rank.stopped = true;
    ::kill(-rank.process, SIGKILL);
  }
}

void LocalRanks::watch(std::vector<pollfd>& descriptors) const {
  if (console_.full()) return;
  for (const Rank& rank : ranks_) {
    for (const int descriptor : rank.output.descriptors()) descriptors.push_back({descriptor, POLLIN, 0});
  }
}

void LocalRanks::read() {
  if (console_.full()) return;
  for (Rank& rank : ranks_) {
    if (rank.number == 0 && rank.process != 0 && !rank.output.descriptors().empty()) {
      copy_terminal_size(rank.output.descriptors().front());
    }
    const bool failed_before = rank.output.log_failed();
    rank.output.read();
    if (rank.output.log_failed() && !failed_before) {
      console_.note(fmt::format("the log {} cannot be written any more; the rank goes on without.",
                                rank.output.log_path().string()));
    }
  }
}

void LocalRanks::reap() {
  int status = 0;
  // -1: orphans that were adopted end here, too.
  for (pid_t process = 0; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    for (Rank& rank : ranks_) {
      if (rank.process == process) note_end(rank, status);
    }
  }
}

void LocalRanks::note_end(Rank& rank, int status) {
  ::kill(-rank.process, SIGKILL);  // what it left running in its group
  rank.process = 0;
  rank.output.finish();
  RankEnd end{rank.number,
              status,
              rank.stopped,
              std::chrono::duration<double>(Clock::now() - started_).count(),
              plan_.host,
              rank.output.log_path().string(),
              rank.output.last_error()};
  if (!end.ok() && !end.stopped) stop();
  ends_.push_back(std::move(end));
}

int LocalRanks::act_when_due() {
  if (!running()) return -1;
  const auto now = Clock::now();
  if (terminate_at_ && now >= *terminate_at_) {
    terminate_at_.reset();
    kill_at_ = now + kSaving;
    send(SIGTERM);
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_ = now + kSaving;  // again, should one have been started meanwhile
    console_.note(fmt::format("not all ranks ended within {} seconds of being asked; they are killed.",
                              kSaving.count()));
    kill_all();
  }
  const std::optional<Clock::time_point> next = terminate_at_ ? terminate_at_ : kill_at_;
  if (!next) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*next - now).count());
}

bool LocalRanks::running() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.process != 0; });
}

bool LocalRanks::failed() const {
  return std::ranges::any_of(ends_, [](const RankEnd& end) { return !end.ok() && !end.stopped; });
}

}  // namespace mulligan
