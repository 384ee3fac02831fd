// FaultWatch finds a rank that is lost, stuck while others wait for it, or slow. It uses only the ranks' own reports, without
// sockets or a clock: the caller gives times in monotonic seconds.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/ranks/control_messages.h"
#include "framework/ranks/control_options.h"

namespace mulligan {

class FaultWatch {
 public:
  struct Suspect {
    int rank = -1;     // -1: no single rank
    std::string what;  // "said nothing for 10 s"
  };

  // The limits are those of `options`: silent, wedged, first_step, slow. A heartbeat's contents may be one heartbeat old, and the
  // caller asks once per heartbeat. So limits are shorter by that, and findings come within them.
  FaultWatch(int ranks, const ControlOptions& options, double now);

  // Bytes came from a rank at that time.
  void heard(int rank, double time) {
    double& last = ranks_[static_cast<std::size_t>(rank)].heard;
    last = std::max(last, time);
  }
  double last_heard(int rank) const { return ranks_[static_cast<std::size_t>(rank)].heard; }
  void report(int rank, const Heartbeat& heartbeat, double now);
  // This process itself was stopped for a while, so silence and counters until now prove nothing.
  void forgive(double now);

  // A rank that has sent nothing for too long. Rank 0, which asks, is never one.
  std::optional<Suspect> lost(double now) const;
  // A rank that is stuck while others wait for it. If all wait and nothing moves, no single rank.
  std::optional<Suspect> wedged(double now) const;
  // A rank that others wait for, once for each wait; or one that the others waited for during most of the last minute.
  std::optional<Suspect> slow(double now);

 private:
  struct Rank {
    double heard = 0;
    Heartbeat last;
    double changed = 0;        // when its counters changed last
    double waits_since = 0;    // since when it waits for others, if it does
    bool warned = false;       // about this wait
    double waited_before = 0;  // waited_seconds when the window began
  };
  bool waits(const Rank& rank) const;
  double limit(const Rank& rank) const;
  bool has_more_time(const Rank& rank) const;  // also if those that wait have nothing left to do
  double first_waiting(double now) const;      // since when a rank waits; `now` if none does
  // Seconds without progress while others waited; 0 if it moves or waits itself.
  double stood(const Rank& rank, double now, double first_waiting) const;
  std::optional<Suspect> steadily_slow(double now);

  std::vector<Rank> ranks_;
  double silent_, wedged_, first_step_, slow_;
  double window_begin_;
};

}  // namespace mulligan
