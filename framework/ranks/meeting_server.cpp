#include <algorithm>
#include <utility>

#include "framework/core/error.h"
#include "framework/ranks/meeting.h"

namespace mulligan {

// Connections that have proved nothing; the oldest gives way.
constexpr std::size_t most_newcomers = 256;

MeetingServer::MeetingServer(SocketLoop& loop, RunIdentity run, RankName own, double handshake_seconds,
                             Callbacks callbacks)
    : loop_(loop),
      run_(std::move(run)),
      own_(std::move(own)),
      handshake_seconds_(handshake_seconds),
      callbacks_(std::move(callbacks)) {}

void MeetingServer::greet(std::shared_ptr<Link> link) {
  if (newcomers_.size() >= most_newcomers) drop(newcomers_.front().link.get(), "");
  Link* const raw = link.get();
  Newcomer& newcomer = newcomers_.emplace_back(Newcomer{link, random_nonce()});
  link->on_message = [this, raw](const ControlMessage& message) { judge(raw, message); };
  link->on_closed = [this, raw](const std::string&) { drop(raw, ""); };
  Greeting greeting;
  greeting.nonce = newcomer.nonce;
  link->send(write_message(greeting));
  loop_.after(handshake_seconds_, [this, waiting = std::weak_ptr(link)] {
    if (const auto still = waiting.lock()) drop(still.get(), "it says nothing");
  });
}

std::list<MeetingServer::Newcomer>::iterator MeetingServer::find(const Link* link) {
  return std::ranges::find_if(newcomers_,
                              [&](const Newcomer& newcomer) { return newcomer.link.get() == link; });
}

void MeetingServer::drop(Link* link, const std::string& reason) {
  const auto newcomer = find(link);
  if (newcomer == newcomers_.end()) return;
  if (!reason.empty()) {
    callbacks_.log(fmt::format("a connection from {} is not a rank's and was dropped: {}",
                               link->peer_address(), reason));
  }
  const auto keep = newcomer->link;
  newcomers_.erase(newcomer);
  keep->close();
}

void MeetingServer::judge(Link* link, const ControlMessage& answer) {
  const auto newcomer = find(link);
  if (newcomer == newcomers_.end()) return;
  const auto keep = newcomer->link;
  const Nonce nonce = newcomer->nonce;
  Judgement judgement = judge_hello(answer, nonce, run_, link->peer_address(), link->peer_on_loopback());
  if (judgement.admission == Judgement::Admission::stranger) return drop(link, judgement.sentence);
  newcomers_.erase(newcomer);
  if (judgement.admission == Judgement::Admission::accepted) {
    keep->on_message = nullptr;
    keep->on_closed = nullptr;
    judgement.sentence =
        callbacks_.take(judgement.hello, keep, write_message(welcome(judgement.hello, nonce, run_, own_)));
    if (judgement.sentence.empty()) return;
    judgement.admission = Judgement::Admission::refused;
  }
  const bool other_run = judgement.admission == Judgement::Admission::other_run;
  keep->send(write_message(Refusal{static_cast<std::uint8_t>(other_run ? 1 : 0), judgement.sentence}));
  keep->close();
  if (!other_run) return callbacks_.refused(judgement);
  // It comes again and again, as its rank 0 is elsewhere.
  if (!std::exchange(other_run_logged_, true)) callbacks_.log(judgement.sentence);
}

}  // namespace mulligan
