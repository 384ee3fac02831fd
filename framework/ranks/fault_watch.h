// FaultWatch: which rank is lost, stands still while others wait for it, or is slow; from what ranks tell
// about themselves. No sockets and no clock here: times are monotonic seconds that the caller gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/ranks/control_messages.h"
#include "framework/ranks/control_options.h"

namespace mulligan {

class FaultWatch {
 public:
  struct Suspect {
    int rank = -1;     // -1: no single one
    std::string what;  // "said nothing for 10 s"
  };

  // The limits are those of `options`: silent, wedged, first_step, slow. What a heartbeat tells may be one
  // heartbeat old, and the caller asks once in a heartbeat: limits are that much shorter, so that findings
  // come within them.
  FaultWatch(int ranks, const ControlOptions& options, double now);

  // Anything came from a rank.
  void heard(int rank, double now) { ranks_[static_cast<std::size_t>(rank)].heard = now; }
  double last_heard(int rank) const { return ranks_[static_cast<std::size_t>(rank)].heard; }
  void report(int rank, const Heartbeat& heartbeat, double now);
  // This process itself was stopped for a while: silence until now proves nothing, and nor do counters.
  void forgive(double now);

  // A rank (but rank 0, which asks) that has said nothing for too long.
  std::optional<Suspect> lost(double now) const;
  // A rank that stands still while others wait for it; no single one where all wait and nothing moves.
  std::optional<Suspect> wedged(double now) const;
  // A rank that others wait for, once for each time; or which the others spent much of the last minute
  // waiting for.
  std::optional<Suspect> slow(double now);

 private:
  struct Rank {
    double heard = 0;
    Heartbeat last;
    double changed = 0;        // when its counters moved last
    double waits_since = 0;    // since when it waits for others, if it does
    bool warned = false;       // of this standstill
    double waited_before = 0;  // waited_seconds when the window began
  };
  bool waits(const Rank& rank) const;
  double limit(const Rank& rank) const;
  bool has_more_time(const Rank& rank) const;  // also where those that wait have nothing left to do
  double first_waiting(double now) const;      // since when one of them waits; `now` where none does
  // While others waited; 0 where it moves or waits itself.
  double stood(const Rank& rank, double now, double first_waiting) const;
  std::optional<Suspect> steadily_slow(double now);

  std::vector<Rank> ranks_;
  double silent_, wedged_, first_step_, slow_;
  double window_begin_;
};

}  // namespace mulligan
