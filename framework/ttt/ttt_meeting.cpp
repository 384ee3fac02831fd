// Where all lanes and ranks meet: what was scored becomes known to all of them, is reported, and trains the
// base model.
#include <algorithm>
#include <bit>
#include <numbers>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

void TttScorer::meet(const LanePlan::Stretch& stretch) {
  if (world_size() > 1) exchange(stretch);
  note_scored(stretch);
  report_stretch(stretch);
  if (stretch.boundary && base_ && !report_.fell_back) train_base(*stretch.boundary, stretch.end - 1);
}

void TttScorer::note_scored(const LanePlan::Stretch& stretch) {
  for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) {
    const DocumentBatch& batch = plan_.queue[static_cast<std::size_t>(queue)].batch;
    for (std::size_t slot = 0; slot < batch.documents.size(); ++slot) {
      scored_.push_back({batch.index, static_cast<int>(slot), batch.documents[slot]});
    }
  }
}

void TttScorer::exchange(const LanePlan::Stretch& stretch) {
  TttMessage own;
  for (const auto& [queue, batch] : pending_) own.batches.push_back(batch);
  own.invalid_reason = invalid_reason_;
  own.events = std::move(buffered_events_);
  buffered_events_.clear();
  const std::vector<std::string> texts = setup_.communicator->group().gather_texts(to_text(own));
  for (std::int64_t other = 0; other < world_size(); ++other) {
    const TttMessage message = read_ttt_message(texts[static_cast<std::size_t>(other)]);
    if (!message.invalid_reason.empty()) throw InvalidRun(message.invalid_reason);
    if (other != rank()) apply_message(message);
  }
  merge_losses(stretch);
}

void TttScorer::apply_message(const TttMessage& message) {
  for (const TttPendingBatch& batch : message.batches) pending_[batch.queue] = batch;
  if (rank() != 0 || !listener_) return;
  for (const TttMessage::Event& event : message.events)
    listener_->on_event(
        {event.kind, event.queue, event.batch_index, event.chunk, event.documents, nullptr, event.chosen});
}

void TttScorer::merge_losses(const LanePlan::Stretch& stretch) {
  const auto for_targets = [&](bool own, auto&& act) {
    for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) {
      if (is_own(queue) != own) continue;
      for (const int number : plan_.queue[static_cast<std::size_t>(queue)].batch.documents) {
        const std::int64_t first = plan_.document(number).start + 1;
        for (std::int64_t target = first; target < first + plan_.targets(number); ++target) act(target);
      }
    }
  };
  std::vector<float> losses(data_.tokens.size(), 0.0F);
  for_targets(true,
              [&](std::int64_t target) { losses[static_cast<std::size_t>(target)] = book_.loss(target); });
  setup_.losses->merge(losses);
  for_targets(false,
              [&](std::int64_t target) { book_.enter(target, losses[static_cast<std::size_t>(target)]); });
  if (!feed_) return;
  std::vector<float> plain(data_.tokens.size(), 0.0F);
  for_targets(true, [&](std::int64_t target) {
    plain[static_cast<std::size_t>(target)] = plain_book_[static_cast<std::size_t>(target)];
  });
  setup_.losses->merge(plain);
  for_targets(false, [&](std::int64_t target) {
    plain_book_[static_cast<std::size_t>(target)] = plain[static_cast<std::size_t>(target)];
  });
}

// One lane watches for a collapse batch by batch.
void TttScorer::report_batch(const TttPendingBatch& batch) {
  pending_[batch.queue] = batch;
  if (world_size() > 1) return;
  const std::size_t reported = report_.batches.size();
  report_batches();
  if (setup_.lanes == 1) watch_for_collapse(report_.batches.at(reported));
}

// Several lanes decide where they meet, so that their speeds do not matter.
void TttScorer::report_stretch(const LanePlan::Stretch& stretch) {
  report_batches();
  for (std::int64_t queue = stretch.first; setup_.lanes > 1 && queue < stretch.end; ++queue)
    watch_for_collapse(report_.batches.at(static_cast<std::size_t>(queue)));
}

void TttScorer::report_run() {
  report_.checks = suffixes_.summary();
  report_.lanes = setup_.lanes;
  report_.ranks = world_size();
  report_.sums = report_.batches.empty() ? ScoreSums{} : report_.batches.back().running;
  report_.compared = compared_;
  report_.untransformed = plain_;
  report_.documents = plan_.chosen_documents;
  report_.bins = length_bins();
}

// What is scored, as far as every batch before it is.
void TttScorer::report_batches() {
  while (true) {
    const auto next = pending_.find(static_cast<std::int64_t>(report_.batches.size()));
    if (next == pending_.end()) return;
    report_.batches.push_back(report_of(next->second));
    pending_.erase(next);
    if (listener_) listener_->on_batch(report_.batches.back());
  }
}

TttBatchReport TttScorer::report_of(const TttPendingBatch& pending) {
  const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(pending.queue)];
  TttBatchReport report;
  report.queue = pending.queue;
  report.batch_index = batch.batch.index;
  report.documents = static_cast<std::int64_t>(batch.batch.documents.size());
  report.longest_tokens = plan_.targets(batch.batch.documents.back());
  for (const int number : batch.batch.documents) {
    const std::int64_t first = plan_.document(number).start + 1;
    report.sums += book_.range(first, first + plan_.targets(number));
    if (feed_) plain_ += book_.range_of(plain_book_, first, first + plan_.targets(number));
    if (!data_.without.empty())
      compared_ += book_.compare(data_.without, first, first + plan_.targets(number));
  }
  report.running = report.sums;
  if (!report_.batches.empty()) {
    report.running = report_.batches.back().running;
    report.running += report.sums;
  }
  report.compared = compared_;
  report.norms = pending.norms;
  report.adapted = pending.adapted;
  report.seconds = pending.seconds;
  return report;
}

void TttScorer::watch_for_collapse(const TttBatchReport& batch) {
  const auto& [with, without] = batch.compared;
  if (setup_.config.on_collapse == OnCollapse::off || without.tokens == 0 || report_.collapsed_at >= 0)
    return;
  const auto units = static_cast<double>(with.bytes > 0 ? with.bytes : with.tokens);
  const double excess = (with.loss_nats - without.loss_nats) / std::numbers::ln2 / units;
  if (excess <= setup_.config.collapse_margin) return;
  report_.collapsed_at = batch.queue;
  tell_of_all(TttEventKind::collapse, batch.queue, batch.batch_index);
  if (setup_.config.on_collapse != OnCollapse::fallback) return;
  report_.fell_back = true;
  tell_of_all(TttEventKind::fallback, batch.queue, batch.batch_index);
}

void TttScorer::train_base(std::int64_t boundary, std::int64_t queue) {
  if (!order_->idle()) throw std::logic_error("the base model may only be trained between two batches");
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::uint16_t> tokens = phase_tokens(data_.tokens, plan_, scored_, boundary);
  TttPhaseReport phase;
  phase.phase = static_cast<std::int64_t>(report_.phases.size()) + 1;
  phase.documents = std::min<std::int64_t>(boundary, static_cast<std::int64_t>(scored_.size()));
  phase.tokens = static_cast<std::int64_t>(tokens.size());
  phase.steps = base_->run(tokens);
  phase.seconds = seconds_since(start);
  report_.phases.push_back(phase);
  tell_of_all(TttEventKind::phase, queue, -1);
  if (listener_) listener_->on_phase(report_.phases.back());
}

std::vector<TttLengthBin> TttScorer::length_bins() const {
  std::map<int, TttLengthBin> bins;
  for (const ScoredDocument& one : scored_) {
    const std::int64_t targets = plan_.targets(one.number);
    const int power = std::bit_width(static_cast<std::uint64_t>(targets)) - 1;
    TttLengthBin& bin = bins[power];
    bin.shortest = std::int64_t{1} << power;
    bin.longest = 2 * bin.shortest - 1;
    ++bin.documents;
    const std::int64_t first = plan_.document(one.number).start + 1;
    bin.sums += book_.range(first, first + targets);
    if (!data_.without.empty()) bin.compared += book_.compare(data_.without, first, first + targets);
  }
  std::vector<TttLengthBin> list;
  for (const auto& [power, bin] : bins) list.push_back(bin);
  return list;
}

// What a rank other than the first has seen is sent to the first at the next meeting, if anyone logs it.
void TttScorer::tell(const TttEvent& event) {
  if (buffers_events()) {
    buffered_events_.push_back({event.kind,
                                event.queue,
                                event.batch_index,
                                event.chunk,
                                {event.documents.begin(), event.documents.end()},
                                event.chosen});
  }
  if (listener_) listener_->on_event(event);
}

// What all ranks do alike at a meeting; the first tells it.
void TttScorer::tell_of_all(TttEventKind kind, std::int64_t queue, std::int64_t batch_index) {
  if (rank() == 0) tell({kind, queue, batch_index, -1, {}, nullptr});
}

}  // namespace mulligan
