// What ranks exchange where they meet.
#include <map>
#include <utility>

#include "framework/core/error.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

constexpr const char* summed_losses_name = "ttt/losses";

void TttScorer::prepare_exchange() {
  if (!setup_.communicator) return;
  const std::int64_t positions = std::ssize(data_.tokens);
  model_.store.create(summed_losses_name, TensorType(MLG_F32, {positions}));
  sum_ = setup_.communicator->prepare(
      model_.store, {{Collective::all_reduce, summed_losses_name, summed_losses_name, positions}});
}

// Adding zeros changes no loss.
void TttScorer::merge(std::vector<float>& losses) {
  if (!sum_) return;
  model_.store.upload(summed_losses_name, losses);
  sum_->submit();
  sum_->join();
  setup_.communicator->finish(model_.store);
  losses = model_.store.download_as<float>(summed_losses_name);
}

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

// Of what was booked since, each token's loss is 0 on all ranks but one.
void TttScorer::merge_losses(const LanePlan::Stretch& stretch) {
  std::vector<float> losses = book_.losses(), plain = plain_book_;
  merge(losses);
  if (feed_) merge(plain);
  for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) {
    if (is_own(queue)) continue;
    for (const auto& [first, last] : plan_.ranges(plan_.batch(queue))) {
      for (auto target = static_cast<std::size_t>(first); target < static_cast<std::size_t>(last); ++target) {
        book_.enter(static_cast<std::int64_t>(target), losses[target]);
        if (feed_) plain_book_[target] = plain[target];
      }
    }
  }
}

}  // namespace mulligan
