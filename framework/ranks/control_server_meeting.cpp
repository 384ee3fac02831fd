// How ranks come to rank 0, and which are missing.
#include <algorithm>
#include <utility>

#include "framework/core/printable.h"
#include "framework/ranks/control_server.h"

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

}  // namespace

ControlServer::ControlServer(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
                             Callbacks callbacks)
    : ControlEnd(loop, environment, std::move(options), std::move(callbacks)),
      seats_(static_cast<std::size_t>(environment.world_size)),
      watch_(environment.world_size, options_, begun_) {
  for (std::size_t i = 0; i < seats_.size(); ++i) seats_[i].name = {static_cast<int>(i), "not there yet", 0};
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

void ControlServer::start() {
  await_meeting();
  tick();
}

Verdict ControlServer::not_met() const {
  std::string sentence =
      fmt::format("{} of {} did not come to rank 0 ({}) within {:g} s; look at their logs.", missing_ranks(),
                  seats_.size(), own_.host, options_.meet);
  if (!refusal_.empty()) sentence += " Refused was: " + refusal_;
  const auto first = std::ranges::find_if(seats_, [](const Seat& one) { return !one.taken; });
  return {first->name.rank, ExitCode::peer_failed, sentence};
}

void ControlServer::greet(std::shared_ptr<Link> link) {
  if (newcomers_.size() >= most_newcomers) drop(newcomers_.front().link.get(), "");
  Link* const raw = link.get();
  const Nonce nonce = newcomers_.emplace_back(Newcomer{link, random_nonce()}).nonce;
  link->on_message = [this, raw](const ControlMessage& message) { judge(raw, message); };
  link->on_closed = [this, raw](const std::string&) { drop(raw, ""); };
  link->send(write_message(Greeting{{}, nonce}));
  loop_.after(options_.handshake, [this, waiting = std::weak_ptr(link)] {
    if (const auto still = waiting.lock()) drop(still.get(), "it says nothing");
  });
}

std::list<ControlServer::Newcomer>::iterator ControlServer::find(const Link* link) {
  return std::ranges::find_if(newcomers_,
                              [&](const Newcomer& newcomer) { return newcomer.link.get() == link; });
}

void ControlServer::drop(Link* link, const std::string& reason) {
  const auto newcomer = find(link);
  if (newcomer == newcomers_.end()) return;
  if (!reason.empty()) {
    options_.log(
        fmt::format("a connection from {} is not a rank's and was dropped: {}", link->peer_address, reason));
  }
  const auto keep = newcomer->link;
  newcomers_.erase(newcomer);
  keep->close();
}

void ControlServer::judge(Link* link, const ControlMessage& answer) {
  const auto newcomer = find(link);
  if (newcomer == newcomers_.end()) return;
  const auto [keep, nonce] = *newcomer;
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

void ControlServer::turned_away(const std::string& sentence) {
  if (!has_met()) decide({0, ExitCode::bad_configuration, sentence});
}

bool ControlServer::has_met() const {
  return std::ranges::all_of(seats_, &Seat::taken);
}

std::string ControlServer::own_address() const {
  for (const Seat& one : seats_) {
    if (one.link && !one.link->peer_on_loopback) return one.link->own_address;
  }
  return "";
}

std::string ControlServer::missing_ranks() const {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].taken) continue;
    std::size_t last = i;
    while (last + 1 < seats_.size() && !seats_[last + 1].taken) ++last;
    ranges.push_back(last == i ? fmt::format("{}", i) : fmt::format("{} to {}", i, last));
    i = last;
  }
  const bool one = ranges.size() == 1 && ranges[0].find(' ') == std::string::npos;
  return fmt::format("rank{} {}", one ? "" : "s", fmt::join(ranges, ", "));
}

std::string ControlServer::missing() const {
  return fmt::format("rank 0 waits for {} of {}", missing_ranks(), seats_.size());
}

// A rank of the run has come. A returned sentence refuses it.
std::string ControlServer::take_seat(const Hello& hello, std::shared_ptr<Link> link,
                                     const Nonce& greeted_with) {
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
  one.link->allow_large_messages();
  one.link->on_message = [this, rank](const ControlMessage& message) { take(rank, message); };
  one.link->on_closed = [this, rank](const std::string& why) { lose(rank, why); };
  one.link->send(write_message(welcome(hello, greeted_with, run_, own_)));
  if (has_met()) stop_trying();
  return "";
}

void ControlServer::refused(const Judgement& judgement) {
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

}  // namespace mulligan
