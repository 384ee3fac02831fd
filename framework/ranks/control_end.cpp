#include "framework/ranks/control_end.h"

#include <algorithm>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/printable.h"

namespace mulligan {

ControlEnd::ControlEnd(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
                       Callbacks callbacks)
    : loop_(loop),
      environment_(environment),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      run_(identity_of(environment, options_.secret)),
      own_(own_name(environment.rank)) {}

void ControlEnd::await_meeting() {
  if (over_ || has_met()) return;
  const double waited = steady_seconds() - begun_;
  if (waited >= options_.meet) return decide(not_met());
  if (waited >= options_.missing_log_interval)
    options_.log(fmt::format("{} since {:.0f} s", missing(), waited));
  loop_.after(std::min(options_.missing_log_interval, options_.meet - waited), [this] { await_meeting(); });
}

// All at once: a stranger who listens at one of the ports and says nothing must not hold up the others.
void ControlEnd::try_ports(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    attempts_.emplace_back().port = environment_.ports[i];
    connect(attempts_.back());
  }
}

void ControlEnd::stop_trying() {
  stopped_ = true;
  for (Attempt& attempt : attempts_) {
    if (const auto link = std::exchange(attempt.link, nullptr)) link->close();
  }
}

void ControlEnd::connect(Attempt& attempt) {
  if (stopped_) return;
  attempt.hello.reset();
  attempt.link = loop_.connect(environment_.host, attempt.port);
  attempt.link->on_message = [this, &attempt](const ControlMessage& message) { answer(attempt, message); };
  attempt.link->on_closed = [this, &attempt](const std::string& why) { try_again(attempt, why); };
  loop_.after(options_.handshake, [this, &attempt, waiting = std::weak_ptr(attempt.link)] {
    const auto still = waiting.lock();
    if (!still || attempt.link != still) return;
    try_again(attempt, still->own_address.empty() ? "it does not answer" : "it says nothing");
  });
}

void ControlEnd::try_again(Attempt& attempt, const std::string& reason) {
  if (const auto link = std::exchange(attempt.link, nullptr)) link->close();
  if (stopped_) return;
  last_reason_ = fmt::format("{} port {}: {}", printable(environment_.host), attempt.port, reason);
  loop_.after(attempt.pause, [this, &attempt] { connect(attempt); });
  attempt.pause = std::min(1.5 * attempt.pause, 1.0);
}

void ControlEnd::answer(Attempt& attempt, const ControlMessage& message) {
  if (stopped_) return;
  if (!attempt.hello) {
    try {
      attempt.hello = answer_greeting(message, run_, own_, random_nonce());
    } catch (const Error& error) {
      turned_away(error.what());
    }
    if (!attempt.hello) return try_again(attempt, "it is not a rank 0 of mulligan");
    attempt.greeted_with = read_message<Greeting>(message).nonce;
    attempt.link->send(write_message(*attempt.hello));
    return;
  }
  if (message.kind == Refusal::kind) {
    const auto refusal = read_message<Refusal>(message);
    if (refusal.other_run == 0) turned_away(printable(refusal.sentence));
    return try_again(attempt, printable(refusal.sentence));
  }
  const auto said = read_message<Welcome>(message);
  if (!is_authentic(said, *attempt.hello, attempt.greeted_with, run_)) {
    turned_away(fmt::format(
        "the process at {} port {} has another secret than {}; give all ranks the same MULLIGAN_SECRET or "
        "MULLIGAN_SECRET_FILE.",
        attempt.link->peer_address, attempt.port, own_.text()));
    return try_again(attempt, "it has another secret");
  }
  const auto link = std::exchange(attempt.link, nullptr);
  link->on_message = nullptr;
  link->on_closed = nullptr;
  link->longest = largest_message;
  stop_trying();
  welcomed(link, said.name);
}

}  // namespace mulligan
