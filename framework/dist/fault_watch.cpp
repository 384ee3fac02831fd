#include "framework/dist/fault_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace mulligan {
namespace {

// A rank is steadily slow when over this many seconds it hardly waited while each other one waited much.
constexpr double slow_window = 60, hardly = 0.05, much = 0.25;

auto counters(const Heartbeat& heartbeat) {
  return std::tuple(heartbeat.submitted, heartbeat.completed, heartbeat.steps, heartbeat.calls);
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
  const auto has_work = [&](const Rank& other) { return waits(other) && other.last.in_call != 2; };
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

std::optional<FaultWatch::Finding> FaultWatch::lost(double now) const {
  for (std::size_t i = 1; i < ranks_.size(); ++i) {
    if (now - ranks_[i].heard >= silent_) {
      return Finding{static_cast<int>(i), fmt::format("said nothing for {:.0f} s", now - ranks_[i].heard)};
    }
  }
  return std::nullopt;
}

double FaultWatch::stood(const Rank& rank, double now) const {
  if (waits(rank)) return 0;
  double first_waiting = now;
  for (const Rank& other : ranks_) {
    if (waits(other)) first_waiting = std::min(first_waiting, other.waits_since);
  }
  return now - std::max(rank.changed, first_waiting);
}

std::optional<FaultWatch::Finding> FaultWatch::wedged(double now) const {
  const auto behind = [](const Rank& a, const Rank& b) {
    return std::tuple(a.last.submitted, a.last.completed, a.last.calls) <
           std::tuple(b.last.submitted, b.last.completed, b.last.calls);
  };
  const Rank* culprit = nullptr;
  for (const Rank& rank : ranks_) {
    const double seconds = stood(rank, now);
    if (seconds > 0 && seconds >= limit(rank) && (!culprit || behind(rank, *culprit))) culprit = &rank;
  }
  if (culprit) {
    return Finding{
        static_cast<int>(culprit - ranks_.data()),
        fmt::format("it has not moved for {:.0f} s while others wait for it, after {} transfers and {} calls",
                    stood(*culprit, now), culprit->last.completed, culprit->last.calls)};
  }
  // All of them wait: for each other, or for transfers that nobody finishes. Then calls tell nothing: whose
  // host waits for its device comes to fewer of them than whose does not.
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
  const bool alone = std::ranges::all_of(
      ranks_, [&](const Rank& rank) { return &rank == &*last || moved_less(*last, rank); });
  return Finding{
      alone ? static_cast<int>(last - ranks_.begin()) : -1,
      fmt::format("nothing has moved for {:.0f} s, and every rank waits, after {} transfers and {} calls",
                  still, last->last.completed, last->last.calls)};
}

std::optional<FaultWatch::Finding> FaultWatch::slow(double now) {
  for (Rank& rank : ranks_) {
    const double seconds = stood(rank, now);
    if (rank.warned || has_more_time(rank) || seconds < slow_ || seconds <= 0) continue;
    rank.warned = true;
    return Finding{static_cast<int>(&rank - ranks_.data()),
                   fmt::format("is slow: others have been waiting for it for {:.0f} s", seconds)};
  }
  return steadily_slow(now);
}

std::optional<FaultWatch::Finding> FaultWatch::steadily_slow(double now) {
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
  return Finding{
      static_cast<int>(slowest - shares.begin()),
      fmt::format("is slow: each other rank spent at least {:.0f} % of the last {:.0f} s waiting for it",
                  100 * least, window)};
}

}  // namespace mulligan
