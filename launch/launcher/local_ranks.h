// The processes of one attempt on this node.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "launch/launcher/launch_plan.h"
#include "launch/launcher/outcome.h"
#include "launch/launcher/rank_output.h"

namespace mulligan {

// After a rank's failure, the time for the others to notice and report it themselves.
inline constexpr std::chrono::seconds kOwnVerdict{2};
// After a request to end, the time for a rank to save its state; then it is killed.
inline constexpr std::chrono::seconds kSaving{30};

class LocalRanks {
 public:
  LocalRanks(const LaunchPlan& plan, LaunchConsole& console) : plan_(plan), console_(console) {}

  // Starts all ranks, each with the log plan.logs/attempt_K/rank_NNNN.log. Throws run_error or config_error.
  void start(int attempt, int port);
  // Passes a signal that asked the launcher for an end to all ranks, which then have kSaving.
  void forward(int signal);
  // A rank has failed on this or another node: the others have kOwnVerdict, then get SIGTERM, then have kSaving.
  void stop();
  void kill_all() { send(SIGKILL); }

  // The descriptors for poll(), and reads them. Nothing is read while the console is full.
  void watch(std::vector<pollfd>& descriptors) const;
  void read();
  // Registers the ranks that have ended, and kills processes that they left.
  void reap();
  // Does all due work. Returns the milliseconds until the next, -1 for never.
  int act_when_due();

  bool running() const;
  // Whether one of them failed by itself.
  bool failed() const;
  const std::vector<RankEnd>& ends() const { return ends_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    int number;
    pid_t process;  // 0: ended
    RankOutput output;
    bool stopped = false;
  };
  void send(int signal);
  void note_end(Rank& rank, int status);

  const LaunchPlan& plan_;
  LaunchConsole& console_;
  std::vector<Rank> ranks_;
  std::vector<RankEnd> ends_;
  Clock::time_point started_;
  std::optional<Clock::time_point> terminate_at_, kill_at_;
};

}  // namespace mulligan
