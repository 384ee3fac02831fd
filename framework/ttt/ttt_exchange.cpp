// What ranks exchange where they meet.
#include <map>
#include <utility>

#include "framework/core/error.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

// What each rank has scored since the last meeting and, where there is an audit log, has seen; or why its scores must not
// be used.
void TttScorer::exchange(const LanePlan::Stretch& stretch) {
  const Json own = {{"batches", now_.pending},
                    {"invalid", invalid_reason_},
                    {"events", std::exchange(buffered_events_, {})}};
  const std::vector<std::string> texts = setup_.communicator->group().gather_texts(own.dump());
  for (std::int64_t other = 0; other < world_size(); ++other) {
    std::map<std::int64_t, TttBatchReport> batches;
    std::vector<TttEvent> events;
    std::string invalid_reason;
    try {
      const Json message = Json::parse(texts[static_cast<std::size_t>(other)]);
      message.at("batches").get_to(batches);
      message.at("invalid").get_to(invalid_reason);
      message.at("events").get_to(events);
    } catch (const std::exception& error) {
      throw run_error("another rank of test-time training sent what is not a message ({}).", error.what());
    }
    if (!invalid_reason.empty()) throw InvalidRun(invalid_reason);
    now_.pending.merge(batches);
    for (const TttEvent& event : events) {
      if (rank() == 0 && listener_) listener_->on_event(event);
    }
  }
  merge_losses(stretch);
}

void TttScorer::merge_losses(const LanePlan::Stretch& stretch) {
  const auto for_targets = [&](bool own, auto&& act) {
    for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) {
      if (is_own(queue) != own) continue;
      for (const auto& [first, last] : plan_.ranges(plan_.batch(queue))) {
        for (std::int64_t target = first; target < last; ++target) act(static_cast<std::size_t>(target));
      }
    }
  };
  const auto merged = [&](const std::vector<float>& of_this_rank) {
    std::vector<float> losses(data_.tokens.size(), 0.0F);
    for_targets(true, [&](std::size_t target) { losses[target] = of_this_rank[target]; });
    setup_.losses->merge(losses);
    return losses;
  };
  const std::vector<float> losses = merged(book_.losses());
  for_targets(false, [&](std::size_t target) { book_.enter(std::int64_t(target), losses[target]); });
  if (!feed_) return;
  const std::vector<float> plain = merged(plain_book_);
  for_targets(false, [&](std::size_t target) { plain_book_[target] = plain[target]; });
}

}  // namespace mulligan
