#include <algorithm>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/ranks/meeting.h"

namespace mulligan {

// Connections that have proved nothing; the oldest gives way.
constexpr std::size_t most_guests = 256;

MeetingHost::MeetingHost(SocketLoop& loop, RunIdentity run, RankName own, double handshake_seconds,
                         Callbacks callbacks)
    : loop_(loop),
      run_(std::move(run)),
      own_(std::move(own)),
      handshake_seconds_(handshake_seconds),
      callbacks_(std::move(callbacks)) {}

void MeetingHost::greet(std::shared_ptr<Link> link) {
  if (guests_.size() >= most_guests) drop(guests_.front().link.get(), "");
  Link* const raw = link.get();
  Guest& guest = guests_.emplace_back(Guest{link, random_nonce()});
  link->on_message = [this, raw](const ControlMessage& message) { judge(raw, message); };
  link->on_closed = [this, raw](const std::string&) { drop(raw, ""); };
  Greeting greeting;
  greeting.nonce = guest.nonce;
  link->send(write_message(greeting));
  loop_.after(handshake_seconds_, [this, waiting = std::weak_ptr(link)] {
    if (const auto still = waiting.lock()) drop(still.get(), "it says nothing");
  });
}

std::list<MeetingHost::Guest>::iterator MeetingHost::find(const Link* link) {
  return std::ranges::find_if(guests_, [&](const Guest& guest) { return guest.link.get() == link; });
}

void MeetingHost::drop(Link* link, const std::string& reason) {
  const auto guest = find(link);
  if (guest == guests_.end()) return;
  if (!reason.empty()) {
    callbacks_.log(
        fmt::format("a connection from {} is no rank's and was dropped: {}", link->peer_address(), reason));
  }
  const auto keep = guest->link;
  guests_.erase(guest);
  keep->close();
}

void MeetingHost::judge(Link* link, const ControlMessage& answer) {
  const auto guest = find(link);
  if (guest == guests_.end()) return;
  const auto keep = guest->link;
  const Nonce nonce = guest->nonce;
  Judgement judgement = judge_hello(answer, nonce, run_, link->peer_address(), link->peer_on_loopback());
  if (judgement.admission == Judgement::Admission::stranger) return drop(link, judgement.sentence);
  guests_.erase(guest);
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
