// What rank 0 does for the ranks that have met: calls, values, ends. How they meet: control_server_meeting.cpp.
#include "framework/ranks/control_server.h"

#include <algorithm>
#include <utility>

#include "framework/core/printable.h"

namespace mulligan {
namespace {

const char* call_name(CallKind call) {
  if (call == CallKind::all_gather) return "all_gather";
  if (call == CallKind::consult) return "consult";
  return call == CallKind::broadcast ? "broadcast" : "barrier";
}

}  // namespace

void ControlServer::take(int rank, const ControlMessage& message) {
  if (decided_ || done_) return;
  switch (message.kind) {
    case Heartbeat::kind:
      return watch_.report(rank, read_message<Heartbeat>(message), SocketLoop::now());
    case Arrival::kind:
      return arrived(rank, read_message<Arrival>(message));
    case Put::kind:
      return put(read_message<Put>(message));
    case Get::kind:
      return wanted(rank, read_message<Get>(message));
    case FailureReport::kind:
      return failed(rank, read_message<FailureReport>(message));
    case Farewell::kind:
      return farewell(rank);
    default:
      throw run_error("it sent a message of kind {}, which there is not", message.kind);
  }
}

void ControlServer::arrived(int rank, const Arrival& arrival) {
  if (decided_ || done_) return;
  Seat& one = seat(rank);
  const auto call = static_cast<CallKind>(arrival.call);
  const bool alike = arrived_ == 0 || (call == call_ && sequence_ == arrival.sequence);
  if (one.arrived || arrival.sequence != one.calls + 1 || !alike) {
    return decide(
        {rank, ExitCode::peer_failed,
         fmt::format("{} came to a {} (call {}), where another rank came to a {} (call {}); start all ranks "
                     "with the same build and configuration.",
                     one.name.text(), call_name(call), arrival.sequence, call_name(call_),
                     arrived_ == 0 ? one.calls + 1 : sequence_)});
  }
  call_ = call;
  sequence_ = one.calls = arrival.sequence;
  one.arrived = arrival.bytes;
  if (++arrived_ == seats_.size()) complete();
}

void ControlServer::complete() {
  const CallKind call = call_;
  arrived_ = 0;
  CallResult result;
  result.sequence = sequence_;
  for (Seat& one : seats_) {
    std::string bytes = *std::exchange(one.arrived, std::nullopt);
    const bool to_all = call == CallKind::all_gather || call == CallKind::consult;
    if (to_all || (call == CallKind::broadcast && &one == &seats_.front())) {
      result.parts.push_back(std::move(bytes));
    }
  }
  if (seats_.size() > 1 && call != CallKind::consult) {
    try {
      send_to_all(shared_frames(write_message(result)));
    } catch (const Error& error) {
      return decide({-1, ExitCode::peer_failed,
                     fmt::format("all_gather (call {}): {}", result.sequence, error.what())});
    }
  }
  callbacks_.call_done(result.sequence, std::move(result.parts));
}

void ControlServer::answer(const CallResult& result) {
  if (decided_ || done_) return;
  send_to_all(shared_frames(write_message(result)));
}

void ControlServer::send_to_all(const Frames& frames) {
  for (Seat& one : seats_) {
    if (one.link) one.link->send(frames);
  }
}

void ControlServer::put(const Put& put) {
  values_.insert_or_assign(put.key, put.value);
  for (const Wanted& one : wanted_[put.key]) answer(one.rank, {one.request, put.value});
  wanted_.erase(put.key);
}

void ControlServer::wanted(int rank, const Get& get) {
  const auto found = values_.find(get.key);
  if (found != values_.end()) return answer(rank, {get.request, found->second});
  wanted_[get.key].push_back({rank, get.request});
}

void ControlServer::answer(int rank, const FoundValue& value) {
  if (rank == 0) return callbacks_.value_there(value.request, value.value);
  seat(rank).link->send(write_message(value));
}

void ControlServer::farewell(int rank) {
  if (decided_) return;
  seat(rank).farewell = true;
  if (!std::ranges::all_of(seats_, [](const Seat& one) { return one.farewell; })) return;
  done_ = true;
  send_to_all(shared_frames(write_message(Farewell{})));
  callbacks_.all_done();
}

void ControlServer::failed(int rank, const FailureReport& report) {
  if (decided_ || done_) return;
  const std::string sentence = printable(report.sentence);
  const std::string who = seat(rank).name.text();
  switch (static_cast<FailureCause>(report.cause)) {
    case FailureCause::stopped:
      return decide({rank, ExitCode::interrupted, fmt::format("{} stopped: {}", who, sentence)});
    case FailureCause::communication:
      // Most probably another rank is gone, which shows within the time of silence.
      if (!suspicion_) suspicion_ = Suspicion{rank, sentence, SocketLoop::now()};
      return;
    case FailureCause::server_lost:
      return given_up_by(rank, sentence);
    default:
      return decide({rank, ExitCode::peer_failed, fmt::format("{} failed: {}", who, sentence)});
  }
}

void ControlServer::tick() {
  if (decided_ || done_) return;
  const double now = SocketLoop::now();
  was_stopped(now);
  last_tick_ = now;
  const Heartbeat own = callbacks_.pulse();
  watch_.report(0, own, now);
  const Frames frames = shared_frames(write_message(own));
  for (Seat& one : seats_) {
    if (!one.taken) watch_.heard(one.name.rank, now);
    if (one.link)
      watch_.heard(one.name.rank, std::max(watch_.last_heard(one.name.rank), one.link->last_heard()));
    if (one.link) one.link->send(frames);
  }
  if (const auto finding = watch_.lost(now)) {
    lose(finding->rank, "it " + finding->what);
  } else if (const auto stuck = all_there() ? watch_.wedged(now) : std::nullopt) {
    const std::string who = stuck->rank < 0 ? "the run" : seat(stuck->rank).name.text();
    decide({stuck->rank, ExitCode::peer_failed,
            fmt::format("{} is stuck: {}; look at the device and the network there.", who, stuck->what)});
  } else {
    if (const auto slow = watch_.slow(now)) {
      callbacks_.log(fmt::format("warning: {} {}", seat(slow->rank).name.text(), slow->what));
    }
    look_at_suspicion(now);
  }
  loop_.after(options_.heartbeat, [this] { tick(); });
}

void ControlServer::decide(const Verdict& verdict) {
  if (std::exchange(decided_, true)) return;
  send_to_all(shared_frames(write_message(
      VerdictMessage{verdict.culprit, static_cast<std::int32_t>(verdict.code), verdict.sentence})));
  callbacks_.decided(verdict);
}

void ControlServer::leave() {
  if (other_servers_) other_servers_->stop();
  for (Seat& one : seats_) {
    if (const auto link = std::exchange(one.link, nullptr)) link->close();
  }
}

}  // namespace mulligan
