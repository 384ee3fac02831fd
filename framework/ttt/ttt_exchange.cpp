// What a run hands on: to other ranks, where they meet, and to the process that continues it.
#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "framework/core/error.h"
#include "framework/ranks/communicator.h"
#include "framework/run/parameter_store.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

constexpr const char* summed_losses_name = "ttt/losses";

std::int64_t TttScorer::rank() const {
  return setup_.communicator ? setup_.communicator->rank() : 0;
}

std::int64_t TttScorer::world_size() const {
  return setup_.communicator ? setup_.communicator->world_size() : 1;
}

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
  const std::vector<std::string> texts = setup_.communicator->group().all_gather(own.dump());
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

// What another process would need to go on between two batches: the adapters that a later batch of the lane inherits,
// and the base model once it was trained.
std::vector<std::string> TttScorer::standing_tensors() const {
  std::vector<std::string> names;
  std::size_t next = now_.done.size();
  for (; !now_.report.fell_back && next < own_.size() && !lanes_.begins_lane(own_[next]); ++next) {
    const AdapterSet::Inheritance* inherits = rule_->inheritance(own_[next]);
    if (!inherits) continue;
    names = sets_.at(setup_.config.batch_documents)->inherited(*inherits);
    break;
  }
  if (!now_.report.phases.empty()) {
    for (const ParameterLayout& layout : model_.layouts) names.push_back(master_name(layout.spec.name));
  }
  return names;
}

TttStanding TttScorer::standing() const {
  TttStanding standing = now_;
  standing.losses = book_.losses();
  standing.choices = rule_->digest();
  standing.plain_losses = plain_book_;
  for (const std::string& name : standing_tensors()) {
    std::vector<std::byte>& bytes = standing.tensors[name];
    bytes.resize(static_cast<std::size_t>(model_.store.type(name).bytes()));
    model_.store.download(name, bytes);
  }
  return standing;
}

void TttScorer::restore(const TttStanding& from) {
  data_error_if(from.done.size() >= own_.size() ||
                    !std::ranges::equal(from.done, std::span(own_).first(from.done.size())) ||
                    from.losses.size() != data_.tokens.size() ||
                    from.plain_losses.size() != plain_book_.size(),
                "the saved state of test-time training is of other documents; start without --resume.");
  now_.done = from.done;
  now_.report = from.report;
  now_.pending = from.pending;
  plain_book_ = from.plain_losses;
  for (const std::int64_t queue : from.done) replay(queue, from);
  data_error_if(
      rule_->digest() != from.choices,
      "[ttt.adapters]: {} now chooses otherwise for documents that were scored before the interruption; start "
      "without --resume, and let the plugin's plan() depend on its arguments alone.",
      setup_.adapters.plugin().description());
  while (own_[from.done.size()] >= lanes_.stretches[stretch_].end) ++stretch_;
  const auto reusable = sets_.find(setup_.config.batch_documents);
  if (reusable != sets_.end()) reusable->second->continue_after(rule_->updates(reusable->first));
  for (const std::string& name : standing_tensors()) {
    const auto saved = from.tensors.find(name);
    data_error_if(
        saved == from.tensors.end() ||
            static_cast<std::int64_t>(saved->second.size()) != model_.store.type(name).bytes(),
        "the saved state of test-time training holds no tensor '{}' of this model; start without --resume.",
        name);
    model_.store.upload(name, saved->second);
  }
  if (!from.report.phases.empty()) refresh_copies(model_.store, model_.layouts);
}

// What an interrupted run told the book, the score transform and the rule of a batch that is done, in the same order.
void TttScorer::replay(std::int64_t queue, const TttStanding& from) {
  const PlannedBatch& batch = plan_.batch(queue);
  const auto pending = from.pending.find(queue);
  const bool adapted =
      (pending != from.pending.end() ? pending->second
                                     : from.report.batches.at(static_cast<std::size_t>(queue)))
          .adapted;
  if (feed_) feed_->enter_lane(lanes_.lane(queue));
  if (adapted) {
    if (lanes_.begins_lane(queue)) rule_->begin_lane();
    rule_->begin_batch(queue);
  }
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
    if (feed_) feed_->propose(batch, chunk, [](auto&&...) {});
    for (const int number : batch.documents) {
      const auto [first, last] = plan_.range(batch, number, chunk);
      for (std::int64_t target = first; target < last; ++target)
        book_.enter(target, from.losses[static_cast<std::size_t>(target)]);
    }
    if (adapted && chunk + 1 < batch.chunks) rule_->choose(chunk, book_);
  }
}

}  // namespace mulligan
