// What rank 0 does for the ranks that have met: calls, values, ends; which rank was lost, and whether that is rank 0 itself, as the
// others see it. How they meet: control_server_meeting.cpp.
#include "framework/ranks/control_server.h"

#include <algorithm>
#include <utility>

#include "framework/core/printable.h"

namespace mulligan {

void ControlServer::take(int rank, const ControlMessage& message) {
  if (over_) return;
  switch (message.kind) {
    case Heartbeat::kind:
      return watch_.report(rank, read_message<Heartbeat>(message), steady_seconds());
    case Arrival::kind:
      return arrived(rank, read_message<Arrival>(message));
    case Put::kind:
      read_message<Put>(message);
      send_to_all(to_frame(message.kind, message.payload));
      return callbacks_.take(message);
    case FailureReport::kind:
      return failed(rank, read_message<FailureReport>(message));
    case Farewell::kind:
      return farewell(rank);
    default:
      // Its answer to a call.
      if (rank == 0 && message.kind == CallResult::kind)
        return send_to_all(to_frame(message.kind, message.payload));
      throw run_error("it sent a message of kind {}, which there is not", message.kind);
  }
}

void ControlServer::arrived(int rank, const Arrival& arrival) {
  Seat& one = seat(rank);
  if (arrived_ == 0) call_ = arrival.call;
  if (one.arrived || arrival.sequence != calls_ + 1 || arrival.call != call_) {
    return decide(
        {rank, ExitCode::peer_failed,
         fmt::format("{} came to a {} (call {}), where another rank came to a {} (call {}); start all ranks "
                     "with the same build and configuration.",
                     one.name.text(), arrival.call, arrival.sequence, call_, calls_ + 1)});
  }
  one.arrived = arrival.bytes;
  if (++arrived_ < seats_.size()) return;
  arrived_ = 0;
  ++calls_;
  CallResult result;
  for (Seat& each : seats_) result.parts.push_back(*std::exchange(each.arrived, std::nullopt));
  callbacks_.take(message_of(result));
}

void ControlServer::send_to_all(std::string text) {
  const Frame frames = shared_frame(std::move(text));
  for (Seat& one : seats_) {
    if (one.link) one.link->send(frames);
  }
}

void ControlServer::farewell(int rank) {
  seat(rank).farewell = true;
  if (!std::ranges::all_of(seats_, [](const Seat& one) { return one.farewell; })) return;
  over_ = true;
  send_to_all(write_message(Farewell{}));
  callbacks_.take(message_of(Farewell{}));
}

void ControlServer::failed(int rank, const FailureReport& report) {
  const std::string sentence = printable(report.sentence);
  const std::string who = seat(rank).name.text();
  switch (report.cause) {
    case FailureCause::stopped:
      return decide({rank, ExitCode::interrupted, fmt::format("{} stopped: {}", who, sentence)});
    case FailureCause::communication:
      // Most probably another rank is gone, which shows within the time of silence.
      if (suspected_) return;
      suspected_ = Verdict{rank, ExitCode::peer_failed,
                           fmt::format("{} failed, and every rank is still there: {}", who, sentence)};
      suspected_since_ = steady_seconds();
      return;
    case FailureCause::server_lost:
      // It heard nothing from rank 0. That is most probably because this process was stopped.
      was_stopped(steady_seconds());
      if (woke_ > begun_) return decide({0, ExitCode::peer_failed, sentence});
      return decide({rank, ExitCode::peer_failed, fmt::format("{}: {}", who, sentence)});
    default:
      return decide({rank, ExitCode::peer_failed, fmt::format("{} failed: {}", who, sentence)});
  }
}

void ControlServer::tick() {
  if (over_) return;
  const double now = steady_seconds();
  was_stopped(now);
  last_tick_ = now;
  const Heartbeat own = callbacks_.pulse();
  watch_.report(0, own, now);
  for (const Seat& one : seats_) watch_.heard(one.name.rank, one.link ? one.link->last_heard : now);
  send_to_all(write_message(own));
  if (const auto finding = watch_.lost(now)) {
    lose(finding->rank, "it " + finding->what);
  } else if (const auto stuck = has_met() ? watch_.wedged(now) : std::nullopt) {
    const std::string who = stuck->rank < 0 ? "the run" : seat(stuck->rank).name.text();
    decide({stuck->rank, ExitCode::peer_failed,
            fmt::format("{} is stuck: {}; look at the device and the network there.", who, stuck->what)});
  } else {
    if (const auto slow = watch_.slow(now)) {
      options_.log(fmt::format("warning: {} {}", seat(slow->rank).name.text(), slow->what));
    }
    look_at_suspected(now);
  }
  loop_.after(options_.heartbeat, [this] { tick(); });
}

void ControlServer::decide(const Verdict& verdict) {
  if (std::exchange(over_, true)) return;
  send_to_all(write_message(verdict));
  callbacks_.take(message_of(verdict));
}

void ControlServer::look_at_suspected(double now) {
  if (!suspected_ || held_ || now < suspected_since_ + 2 * options_.heartbeat) return;
  for (std::size_t i = 1; i < seats_.size(); ++i) {
    if (watch_.last_heard(static_cast<int>(i)) < suspected_since_ + options_.heartbeat) return;
  }
  decide(*suspected_);
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
  const Seat& one = seat(rank);
  // Who has said farewell may go, and who was told that the run is over may go first.
  if (over_ || one.farewell) return;
  const Verdict verdict{
      rank, ExitCode::peer_failed,
      fmt::format("{} was lost: {}; look at its log and its machine.", one.name.text(), why)};
  if (held_) return;
  if (!was_stopped(steady_seconds())) return decide(verdict);
  // Others may have given rank 0 up meanwhile, and their reports count more.
  held_ = verdict;
  loop_.after(2 * options_.heartbeat, [this] { decide(*held_); });
}

void ControlServer::leave() {
  stop_trying();
  for (Seat& one : seats_) {
    if (const auto link = std::exchange(one.link, nullptr)) link->close();
  }
}

}  // namespace mulligan
