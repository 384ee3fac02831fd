// Which rank was lost, as rank 0 sees it; and whether that is rank 0 itself, as the others see it.
#include <algorithm>
#include <utility>

#include "framework/ranks/control_server.h"

namespace mulligan {

void ControlServer::look_at_suspicion(double now) {
  if (!suspicion_ || counts_votes_ || now < suspicion_->since + 2 * options_.heartbeat) return;
  for (std::size_t i = 1; i < seats_.size(); ++i) {
    if (watch_.last_heard(static_cast<int>(i)) < suspicion_->since + options_.heartbeat) return;
  }
  decide({suspicion_->rank, ExitCode::peer_failed,
          fmt::format("{} failed, and every rank is still there: {}", seat(suspicion_->rank).name.text(),
                      suspicion_->sentence)});
}

// Whether this process was stopped until a moment ago: it comes to its work late by far, and what the others
// said meanwhile has yet to be read. Silence and standing counters prove nothing then.
bool ControlServer::was_stopped(double now) {
  if (now - last_tick_ > options_.heartbeat + options_.silent / 2) {
    woke_ = last_tick_ = now;
    watch_.forgive(now);
  }
  return now - woke_ < 2 * options_.heartbeat;
}

void ControlServer::lose(int rank, const std::string& why) {
  Seat& one = seat(rank);
  // Who has said farewell may go, and who was told that the run is over may go first.
  if (decided_ || done_ || one.farewell) return;
  one.lost = true;
  if (one.gave_up) return;  // as it said
  const Verdict verdict{
      rank, ExitCode::peer_failed,
      fmt::format("{} was lost: {}; look at its log and its machine.", one.name.text(), why)};
  if (!was_stopped(SocketLoop::now()) && !counts_votes_) return decide(verdict);
  if (!held_) held_ = verdict;
  count_votes_soon();
}

// A rank has ended its part of the run, as it heard nothing from rank 0: most probably this process was
// stopped. That counts, and not that the connections are closed by now.
void ControlServer::given_up_by(int rank, const std::string& sentence) {
  seat(rank).gave_up = true;
  if (given_up_.empty()) given_up_ = sentence;
  if (!held_)
    held_ = Verdict{rank, ExitCode::peer_failed, fmt::format("{}: {}", seat(rank).name.text(), sentence)};
  count_votes_soon();
}

void ControlServer::count_votes_soon() {
  if (std::exchange(counts_votes_, true)) return;
  loop_.after(2 * options_.heartbeat, [this] { count_votes(); });
}

// Those that gave rank 0 up against those that are still there and have not.
void ControlServer::count_votes() {
  if (decided_ || done_) return;
  const auto gave_up = std::ranges::count_if(seats_, &Seat::gave_up);
  const auto stay =
      std::ranges::count_if(seats_, [](const Seat& one) { return one.link && !one.gave_up && !one.lost; });
  if (gave_up > stay) return decide({0, ExitCode::peer_failed, given_up_});
  decide(*held_);
}

}  // namespace mulligan
