#include <algorithm>
#include <optional>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/ranks/meeting.h"

namespace mulligan {

constexpr double first_pause = 0.1, longest_pause = 1;

// One port, tried over and over.
struct MeetingClient::Attempt {
  std::string host;
  std::uint16_t port = 0;
  double pause = first_pause;
  std::shared_ptr<Link> link;
  Nonce greeted_with{};
  std::optional<Hello> hello;
};

MeetingClient::MeetingClient(SocketLoop& loop, RunIdentity run, RankName own, double handshake_seconds,
                             Callbacks callbacks)
    : loop_(loop),
      run_(std::move(run)),
      own_(std::move(own)),
      handshake_seconds_(handshake_seconds),
      callbacks_(std::move(callbacks)) {}

// All at once: a stranger who listens at one of the ports and says nothing must not hold up the others.
void MeetingClient::try_ports(const std::string& host, const std::vector<std::uint16_t>& ports) {
  for (const std::uint16_t port : ports) {
    attempts_.push_back(std::make_shared<Attempt>());
    attempts_.back()->host = host;
    attempts_.back()->port = port;
    connect(attempts_.back());
  }
}

void MeetingClient::stop() {
  stopped_ = true;
  for (const auto& attempt : attempts_) {
    if (const auto link = std::exchange(attempt->link, nullptr)) link->close();
  }
}

void MeetingClient::connect(const std::shared_ptr<Attempt>& attempt) {
  if (stopped_) return;
  loop_.connect(attempt->host, attempt->port, handshake_seconds_,
                [this, attempt](std::shared_ptr<Link> link, const std::string& reason) {
                  if (stopped_ || !link) {
                    if (link) link->close();
                    return try_again(attempt, reason);
                  }
                  attempt->link = link;
                  attempt->hello.reset();
                  // Not `attempt` itself, which holds the link.
                  const std::weak_ptr<Attempt> weak = attempt;
                  link->on_message = [this, weak](const ControlMessage& message) {
                    if (const auto one = weak.lock()) take(one, message);
                  };
                  link->on_closed = [this, weak](const std::string& why) {
                    if (const auto one = weak.lock()) try_again(one, why);
                  };
                  loop_.after(handshake_seconds_, [this, attempt, waiting = std::weak_ptr(link)] {
                    const auto still = waiting.lock();
                    if (still && attempt->link == still) try_again(attempt, "it says nothing");
                  });
                });
}

void MeetingClient::try_again(const std::shared_ptr<Attempt>& attempt, const std::string& reason) {
  if (const auto link = std::exchange(attempt->link, nullptr)) link->close();
  if (stopped_) return;
  last_reason_ = fmt::format("{} port {}: {}", printable(attempt->host), attempt->port, reason);
  loop_.after(attempt->pause, [this, attempt] { connect(attempt); });
  attempt->pause = std::min(1.5 * attempt->pause, longest_pause);
}

void MeetingClient::take(const std::shared_ptr<Attempt>& attempt, const ControlMessage& message) {
  if (stopped_) return;
  if (!attempt->hello) {
    try {
      attempt->hello = answer_greeting(message, run_, own_, random_nonce());
    } catch (const Error& error) {
      callbacks_.refused(error.what());
    }
    if (!attempt->hello) return try_again(attempt, "it is not a rank 0 of mulligan");
    attempt->greeted_with = read_message<Greeting>(message).nonce;
    attempt->link->send(write_message(*attempt->hello));
    return;
  }
  if (message.kind == Refusal::kind) {
    const auto refusal = read_message<Refusal>(message);
    if (refusal.other_run == 0) callbacks_.refused(printable(refusal.sentence));
    return try_again(attempt, printable(refusal.sentence));
  }
  const auto answer = read_message<Welcome>(message);
  if (!is_authentic(answer, *attempt->hello, attempt->greeted_with, run_)) {
    callbacks_.refused(fmt::format(
        "the process at {} port {} has another secret than {}; give all ranks the same MULLIGAN_SECRET or "
        "MULLIGAN_SECRET_FILE.",
        attempt->link->peer_address, attempt->port, own_.text()));
    return try_again(attempt, "it has another secret");
  }
  const auto link = std::exchange(attempt->link, nullptr);
  link->on_message = nullptr;
  link->on_closed = nullptr;
  link->allow_large_messages();
  stop();
  callbacks_.welcomed(link, answer.name);
}

}  // namespace mulligan
