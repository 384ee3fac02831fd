// The end of the control channel of rank 0: it brings the ranks together, passes their messages on, and decides when the run has failed.
#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include "framework/core/printable.h"
#include "framework/ranks/control_end.h"
#include "framework/ranks/fault_watch.h"

namespace mulligan {

bool is_loopback_name(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

namespace {

// Connections that have proved nothing; the oldest gives way.
constexpr std::size_t most_newcomers = 256;

// The address that rank 0 listens at: the user's choice. On one machine it is the loopback, so other hosts do not see the port.
std::string listening_address(const LaunchEnvironment& environment) {
  if (environment.host == "localhost") return "127.0.0.1";
  return is_loopback_name(environment.host) ? environment.host : environment.interface_name;
}

class ControlServer final : public ControlEnd {
 public:
  ControlServer(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
                Callbacks callbacks)
      : ControlEnd(loop, environment, std::move(options), std::move(callbacks)),
        seats_(static_cast<std::size_t>(environment.world_size)),
        watch_(environment.world_size, options_, begun_) {
    for (std::size_t i = 0; i < seats_.size(); ++i)
      seats_[i].name = {static_cast<int>(i), "not there yet", 0};
    seats_[0].name = own_;
    seats_[0].taken = true;
    if (seats_.size() == 1) return;
    const std::size_t port = loop_.listen(listening_address(environment_), environment_.ports,
                                          [this](std::shared_ptr<Link> link) { greet(std::move(link)); });
    options_.log(fmt::format("rank 0 meets {} other rank{} at {} port {}", seats_.size() - 1,
                             seats_.size() == 2 ? "" : "s", printable(environment_.host),
                             environment_.ports[port]));
    // A process that occupies an earlier port may take itself for rank 0 of this run.
    if (port > 0) loop_.post([this, port] { try_ports(port); });
  }
  void start() override {
    await_meeting();
    tick();
  }
  void tell(const ControlMessage& message) override { take(0, message); }
  std::string own_address() const override {
    for (const Seat& one : seats_) {
      if (one.link && !one.link->peer_on_loopback) return one.link->own_address;
    }
    return "";
  }
  void leave() override {
    stop_trying();
    for (Seat& one : seats_) {
      if (const auto link = std::exchange(one.link, nullptr)) link->close();
    }
  }

  void greet(std::shared_ptr<Link> link) override {
    if (newcomers_.size() >= most_newcomers) drop(newcomers_.front().get(), "");
    Link* const raw = newcomers_.emplace_back(link).get();
    const Nonce nonce = random_nonce();
    link->on_message = [this, raw, nonce](const ControlMessage& message) { judge(raw, message, nonce); };
    link->on_closed = [this, raw](const std::string&) { drop(raw, ""); };
    link->send(write_message(Greeting{{}, nonce}));
    loop_.after(options_.handshake, [this, waiting = std::weak_ptr(link)] {
      if (const auto still = waiting.lock()) drop(still.get(), "it says nothing");
    });
  }

 private:
  struct Seat {
    std::shared_ptr<Link> link;  // rank 0 has none
    RankName name;
    bool taken = false;
    std::optional<std::string> arrived;  // its bytes of the running call
    bool farewell = false;
  };

  std::list<std::shared_ptr<Link>>::iterator find(const Link* link) {
    return std::ranges::find_if(newcomers_, [&](const auto& newcomer) { return newcomer.get() == link; });
  }
  void drop(Link* link, const std::string& reason) {
    const auto newcomer = find(link);
    if (newcomer == newcomers_.end()) return;
    if (!reason.empty()) {
      options_.log(fmt::format("a connection from {} is not a rank's and was dropped: {}", link->peer_address,
                               reason));
    }
    const auto keep = *newcomer;
    newcomers_.erase(newcomer);
    keep->close();
  }
  void judge(Link* link, const ControlMessage& answer, Nonce nonce) {
    const auto newcomer = find(link);
    if (newcomer == newcomers_.end()) return;
    const auto keep = *newcomer;
    Judgement judgement = judge_hello(answer, nonce, run_, link->peer_address, link->peer_on_loopback);
    if (judgement.admission == Judgement::Admission::stranger) return drop(link, judgement.sentence);
    newcomers_.erase(newcomer);
    if (judgement.admission == Judgement::Admission::accepted) {
      keep->on_message = nullptr;
      keep->on_closed = nullptr;
      judgement.sentence = take_seat(judgement.hello, keep, nonce);
      if (judgement.sentence.empty()) return;
      judgement.admission = Judgement::Admission::refused;
    }
    const bool other_run = judgement.admission == Judgement::Admission::other_run;
    keep->send(write_message(Refusal{static_cast<std::uint8_t>(other_run ? 1 : 0), judgement.sentence}));
    keep->close();
    if (!other_run) return refused(judgement);
    // It comes again and again, as its rank 0 is elsewhere.
    if (!std::exchange(other_run_logged_, true)) options_.log(judgement.sentence);
  }
  // A rank of the run has come. A returned sentence refuses it.
  std::string take_seat(const Hello& hello, std::shared_ptr<Link> link, const Nonce& greeted_with) {
    const RankName& name = hello.name;
    const int rank = name.rank;
    Seat& one = seat(rank);
    if (over_) return fmt::format("{} came when the run was over; start the run anew.", name.text());
    if (one.taken) {
      const std::string sentence = fmt::format(
          "two processes are rank {}: process {} on {} and process {} on {}; give each process its own rank.",
          rank, one.name.process, printable(one.name.host), name.process, printable(name.host));
      // A run that is complete goes on without the latecomer.
      if (!has_met()) decide({-1, ExitCode::bad_configuration, sentence});
      return sentence;
    }
    one.link = std::move(link);
    one.name = name;
    one.taken = true;
    watch_.heard(rank, steady_seconds());
    one.link->longest = largest_message;
    one.link->on_message = [this, rank](const ControlMessage& message) { take(rank, message); };
    one.link->on_closed = [this, rank](const std::string& why) { lose(rank, why); };
    one.link->send(write_message(welcome(hello, greeted_with, run_, own_)));
    if (has_met()) stop_trying();
    return "";
  }
  void refused(const Judgement& judgement) {
    options_.log("warning: " + judgement.sentence);
    if (has_met() || over_) return;
    if (refusal_.empty()) refusal_ = judgement.sentence;
    if (judgement.authentic) return decide({-1, ExitCode::bad_configuration, judgement.sentence});
    // Anyone can say this without the secret: it counts when the place stays empty.
    const int rank = judgement.hello.name.rank;
    loop_.after(options_.refusal_grace, [this, rank, sentence = judgement.sentence] {
      const bool empty = rank >= 0 && rank < std::ssize(seats_) && !seat(rank).taken;
      if (empty) decide({-1, ExitCode::bad_configuration, sentence});
    });
  }
  std::string missing_ranks() const {
    std::vector<int> missing;
    for (const Seat& one : seats_) {
      if (!one.taken) missing.push_back(one.name.rank);
    }
    return fmt::format("rank{} {}", missing.size() == 1 ? "" : "s", number_list(missing));
  }
  bool has_met() const override { return std::ranges::all_of(seats_, &Seat::taken); }
  std::string missing() const override {
    return fmt::format("rank 0 waits for {} of {}", missing_ranks(), seats_.size());
  }
  Verdict not_met() const override {
    std::string sentence =
        fmt::format("{} of {} did not come to rank 0 ({}) within {:g} s; look at their logs.",
                    missing_ranks(), seats_.size(), own_.host, options_.meet);
    if (!refusal_.empty()) sentence += " Refused was: " + refusal_;
    const auto first = std::ranges::find_if(seats_, [](const Seat& one) { return !one.taken; });
    return {first->name.rank, ExitCode::peer_failed, sentence};
  }
  void welcomed(std::shared_ptr<Link> link, const RankName&) override { link->close(); }
  void turned_away(const std::string& sentence) override {
    if (!has_met()) decide({0, ExitCode::bad_configuration, sentence});
  }

  void take(int rank, const ControlMessage& message) {
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
  void arrived(int rank, const Arrival& arrival) {
    Seat& one = seat(rank);
    if (arrived_ == 0) call_ = arrival.call;
    if (one.arrived || arrival.sequence != calls_ + 1 || arrival.call != call_) {
      return decide(
          {rank, ExitCode::peer_failed,
           fmt::format(
               "{} came to a {} (call {}), where another rank came to a {} (call {}); start all ranks "
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
  void send_to_all(std::string text) {
    const Frame frames = shared_frame(std::move(text));
    for (Seat& one : seats_) {
      if (one.link) one.link->send(frames);
    }
  }
  void failed(int rank, const FailureReport& report) {
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
        if (woke_ > begun_ && steady_seconds() - woke_ < options_.silent)
          return decide({0, ExitCode::peer_failed, sentence});
        return decide({rank, ExitCode::peer_failed, fmt::format("{}: {}", who, sentence)});
      default:
        return decide({rank, ExitCode::peer_failed, fmt::format("{} failed: {}", who, sentence)});
    }
  }
  void farewell(int rank) {
    seat(rank).farewell = true;
    if (!std::ranges::all_of(seats_, [](const Seat& one) { return one.farewell; })) return;
    over_ = true;
    send_to_all(write_message(Farewell{}));
    callbacks_.take(message_of(Farewell{}));
  }
  void tick() {
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
  void look_at_suspected(double now) {
    if (!suspected_ || held_ || now < suspected_since_ + 2 * options_.heartbeat) return;
    for (std::size_t i = 1; i < seats_.size(); ++i) {
      if (watch_.last_heard(static_cast<int>(i)) < suspected_since_ + options_.heartbeat) return;
    }
    decide(*suspected_);
  }
  // Whether this process was stopped until a moment ago: it comes to its work late by far, and what the others
  // said meanwhile has yet to be read. Silence and standing counters prove nothing then.
  bool was_stopped(double now) {
    if (now - last_tick_ > options_.heartbeat + options_.silent / 2) {
      woke_ = last_tick_ = now;
      watch_.forgive(now);
    }
    return now - woke_ < 2 * options_.heartbeat;
  }
  void lose(int rank, const std::string& why) {
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
  void decide(const Verdict& verdict) override {
    if (std::exchange(over_, true)) return;
    send_to_all(write_message(verdict));
    callbacks_.take(message_of(verdict));
  }
  Seat& seat(int rank) { return seats_[static_cast<std::size_t>(rank)]; }

  std::list<std::shared_ptr<Link>> newcomers_;  // that have not proved anything yet
  bool other_run_logged_ = false;
  std::vector<Seat> seats_;
  std::string refusal_;  // the first, maybe of a missing rank
  FaultWatch watch_;
  // The running call, the number of those before it, and how many ranks have reached it.
  std::string call_;
  std::uint64_t calls_ = 0;
  std::size_t arrived_ = 0;
  std::optional<Verdict> suspected_;  // of a failed transfer, unless another rank is gone
  double suspected_since_ = 0;
  std::optional<Verdict> held_;  // until those that gave up rank 0 have told it
  double woke_ = -1e9;           // when this process resumed after a stop
};

}  // namespace

std::unique_ptr<ControlEnd> make_control_server(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks) {
  return std::make_unique<ControlServer>(loop, environment, std::move(options), std::move(callbacks));
}

}  // namespace mulligan
