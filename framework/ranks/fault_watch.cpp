#include "framework/ranks/fault_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace mulligan {
namespace {

// A rank is steadily slow when over this many seconds it hardly waited while each other one waited much.
constexpr double slow_window = 60, hardly = 0.05, much = 0.25;

auto counters(const Heartbeat& heartbeat) {
  return std::tuple(heartbeat.submitted, heartbeat.completed, heartbeat.steps, heartbeat.calls,
                    heartbeat.entered);
}

}  // namespace

FaultWatch::FaultWatch(int ranks, const ControlOptions& options, double now)
    : ranks_(static_cast<std::size_t>(ranks)),
      silent_(options.silent - options.heartbeat),
      wedged_(options.wedged - 2 * options.heartbeat),
      first_step_(options.first_step - 2 * options.heartbeat),
      slow_(options.slow),
      window_begin_(now) {
  forgive(now);
}

bool FaultWatch::waits(const Rank& rank) const {
  return rank.last.in_call != 0 || rank.last.submitted > rank.last.completed;
}

double FaultWatch::limit(const Rank& rank) const {
  return has_more_time(rank) ? first_step_ : wedged_;
}

bool FaultWatch::has_more_time(const Rank& rank) const {
  const auto has_work = [&](const Rank& other) {
    return waits(other) && other.last.in_call != waits_in_farewell;
  };
  return rank.last.steps == 0 || rank.last.long_work != 0 || std::ranges::none_of(ranks_, has_work);
}

void FaultWatch::report(int rank, const Heartbeat& heartbeat, double now) {
  Rank& one = ranks_[static_cast<std::size_t>(rank)];
  const bool waited = waits(one);
  const bool moved = counters(heartbeat) != counters(one.last);
  one.last = heartbeat;
  if (moved) {
    one.changed = now;
    one.warned = false;
  }
  if (moved || !waited) one.waits_since = now;
}

void FaultWatch::forgive(double now) {
  for (Rank& rank : ranks_) rank.heard = rank.changed = rank.waits_since = now;
}

std::optional<FaultWatch::Suspect> FaultWatch::lost(double now) const {
  for (std::size_t i = 1; i < ranks_.size(); ++i) {
    if (now - ranks_[i].heard >= silent_) {
      return Suspect{static_cast<int>(i), fmt::format("said nothing for {:.0f} s", now - ranks_[i].heard)};
    }
  }
  return std::nullopt;
}

double FaultWatch::first_waiting(double now) const {
  double first = now;
  for (const Rank& rank : ranks_) {
    if (waits(rank)) first = std::min(first, rank.waits_since);
  }
  return first;
}

double FaultWatch::stood(const Rank& rank, double now, double first_waiting) const {
  return waits(rank) ? 0 : now - std::max(rank.changed, first_waiting);
}

std::optional<FaultWatch::Suspect> FaultWatch::wedged(double now) const {
  const auto fell_back = [](const Rank& a, const Rank& b) {
    return std::tuple(a.last.submitted, a.last.completed, a.last.calls) <
           std::tuple(b.last.submitted, b.last.completed, b.last.calls);
  };
  const Rank* culprit = nullptr;
  const double waiting = first_waiting(now);
  for (const Rank& rank : ranks_) {
    const double seconds = stood(rank, now, waiting);
    if (seconds > 0 && seconds >= limit(rank) && (!culprit || fell_back(rank, *culprit))) culprit = &rank;
  }
  if (culprit) {
    return Suspect{
        static_cast<int>(culprit - ranks_.data()),
        fmt::format("it has not moved for {:.0f} s while others wait for it, after {} transfers and {} calls",
                    stood(*culprit, now, waiting), culprit->last.completed, culprit->last.calls)};
  }
  // All ranks wait, for each other or for transfers that never end. Then the number of calls says nothing, because a
  // host that waits for its device makes fewer calls than one that does not.
  const bool in_transfers =
      std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.last.submitted > rank.last.completed; });
  const auto moved_less = [&](const Rank& a, const Rank& b) {
    const std::tuple own(a.last.submitted, a.last.completed), other(b.last.submitted, b.last.completed);
    return own == other ? !in_transfers && a.last.calls < b.last.calls : own < other;
  };
  double still = now, longest = 0;
  for (const Rank& rank : ranks_) {
    if (!waits(rank)) return std::nullopt;
    still = std::min(still, now - std::max(rank.changed, rank.waits_since));
    longest = std::max(longest, limit(rank));
  }
  if (still < longest) return std::nullopt;
  const auto last = std::ranges::min_element(ranks_, moved_less);
  const bool called = std::ranges::any_of(
      ranks_, [](const Rank& rank) { return rank.last.in_call == waits_in_communicator; });
  const bool alone = std::ranges::all_of(
      ranks_, [&](const Rank& rank) { return &rank == &*last || moved_less(*last, rank); });
  return Suspect{alone ? static_cast<int>(last - ranks_.begin()) : -1,
                 fmt::format("nothing has moved for {:.0f} s, and {}, after {} transfers and {} calls", still,
                             ranks_.size() == 1 ? "its communicator does not return from a call"
                             : called           ? "every rank waits, some in a call of the communicator"
                                                : "every rank waits",
                             last->last.completed, last->last.calls)};
}

std::optional<FaultWatch::Suspect> FaultWatch::slow(double now) {
  const double waiting = first_waiting(now);
  for (Rank& rank : ranks_) {
    const double seconds = stood(rank, now, waiting);
    if (rank.warned || seconds < slow_ || seconds <= 0 || has_more_time(rank)) continue;
    rank.warned = true;
    return Suspect{static_cast<int>(&rank - ranks_.data()),
                   fmt::format("is slow: others have been waiting for it for {:.0f} s", seconds)};
  }
  return steadily_slow(now);
}

std::optional<FaultWatch::Suspect> FaultWatch::steadily_slow(double now) {
  const double window = now - window_begin_;
  if (window < slow_window) return std::nullopt;
  window_begin_ = now;
  std::vector<double> shares;
  for (Rank& rank : ranks_) {
    shares.push_back((rank.last.waited_seconds - rank.waited_before) / window);
    rank.waited_before = rank.last.waited_seconds;
    if (rank.last.steps == 0) return std::nullopt;
  }
  const auto slowest = std::ranges::min_element(shares);
  double least = 1;
  for (const double& share : shares) {
    if (&share != &*slowest) least = std::min(least, share);
  }
  if (ranks_.size() < 2 || *slowest > hardly || least < much) return std::nullopt;
  return Suspect{
      static_cast<int>(slowest - shares.begin()),
      fmt::format("is slow: each other rank spent at least {:.0f} % of the last {:.0f} s waiting for it",
                  100 * least, window)};
}

}  // namespace mulligan
