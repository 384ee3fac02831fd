// Where all lanes and ranks meet: what was scored becomes known to all of them, is reported, and trains the
// base model.
#include <algorithm>
#include <bit>
#include <numbers>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

void TttScorer::meet(const LanePlan::Stretch& stretch) {
  if (world_size() > 1) exchange(stretch);
  report_stretch(stretch);
  if (stretch.boundary && base_ && !now_.report.fell_back) train_base(stretch);
}

// All ranks but one have 0 for a token that was booked since the last meeting.
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

// One lane watches for a collapse batch by batch.
void TttScorer::report_batch(std::int64_t queue, AdapterSet& set, double seconds) {
  const PlannedBatch& batch = plan_.batch(queue);
  TttBatchReport& report = now_.pending[queue];
  report.queue = queue;
  report.batch = batch.index;
  report.documents = batch.size();
  report.longest_tokens = plan_.targets(batch.documents.back());
  report.adapted = !now_.report.fell_back;
  report.seconds = seconds;
  report.adapters = set.norms();
  if (world_size() > 1) return;
  report_batches();
  if (setup_.lanes == 1) watch_for_collapse(now_.report.batches.back());
}

// Several lanes decide where they meet, so that their speeds do not matter.
void TttScorer::report_stretch(const LanePlan::Stretch& stretch) {
  report_batches();
  for (std::int64_t queue = stretch.first; setup_.lanes > 1 && queue < stretch.end; ++queue)
    watch_for_collapse(now_.report.batches.at(static_cast<std::size_t>(queue)));
}

void TttScorer::report_run() {
  TttReport& report = now_.report;
  report.checks = suffixes_.summary();
  report.lanes = setup_.lanes;
  report.ranks = world_size();
  if (!report.batches.empty()) report.sums = report.batches.back().running;
  report.documents = plan_.chosen_documents;
  std::map<int, TttLengthBin> bins;
  for (const PlannedBatch& batch : plan_.queue) {
    for (const TargetRange& range : plan_.ranges(batch)) {
      const int power = std::bit_width(static_cast<std::uint64_t>(range.count())) - 1;
      TttLengthBin& bin = bins[power];
      bin.shortest_tokens = std::int64_t{1} << power;
      bin.longest_tokens = 2 * bin.shortest_tokens - 1;
      ++bin.documents;
      bin.score += book_.sums(range);
      bin.compared += book_.compare(data_.without, range);
    }
  }
  for (const auto& [power, bin] : bins) report.bins.push_back(bin);
}

// What is scored, as far as every batch before it is.
void TttScorer::report_batches() {
  TttReport& all = now_.report;
  while (true) {
    auto next = now_.pending.extract(std::ssize(all.batches));
    if (next.empty()) return;
    TttBatchReport& report = next.mapped();
    for (const TargetRange& range : plan_.ranges(plan_.batch(report.queue))) {
      report.score += book_.sums(range);
      if (feed_) all.untransformed += book_.sums_of(plain_book_, range);
      all.compared += book_.compare(data_.without, range);
    }
    if (!all.batches.empty()) report.running = all.batches.back().running;
    report.running += report.score;
    report.compared = all.compared;
    all.batches.push_back(std::move(report));
    if (listener_) listener_->on_batch(all.batches.back());
  }
}

void TttScorer::watch_for_collapse(const TttBatchReport& batch) {
  const auto& [with, without] = batch.compared;
  const OnCollapse reaction = setup_.config.on_collapse;
  if (reaction == OnCollapse::off || without.tokens == 0 || now_.report.collapsed_at >= 0) return;
  const auto units = static_cast<double>(with.bytes > 0 ? with.bytes : with.tokens);
  const double excess = (with.loss_nats - without.loss_nats) / std::numbers::ln2 / units;
  if (excess <= setup_.config.collapse_margin) return;
  now_.report.collapsed_at = batch.queue;
  now_.report.fell_back = reaction == OnCollapse::fallback;
  if (rank() > 0) return;  // all do this alike; the first tells it
  tell({TttEventKind::collapse, batch.queue, batch.batch, -1, {}, {}});
  if (now_.report.fell_back) tell({TttEventKind::fallback, batch.queue, batch.batch, -1, {}, {}});
}

void TttScorer::train_base(const LanePlan::Stretch& stretch) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::uint16_t> tokens = phase_tokens(data_.tokens, plan_, stretch.end, *stretch.boundary);
  std::int64_t scored = 0;
  for (std::int64_t queue = 0; queue < stretch.end; ++queue) scored += plan_.batch(queue).size();
  TttPhaseReport phase;
  phase.phase = std::ssize(now_.report.phases) + 1;
  phase.documents = std::min(*stretch.boundary, scored);
  phase.tokens = std::ssize(tokens);
  phase.steps = base_->run(tokens);
  phase.seconds = seconds_since(start);
  now_.report.phases.push_back(phase);
  if (rank() == 0)
    tell({TttEventKind::phase, stretch.end - 1, -1, -1, {}, {}, nullptr, &now_.report.phases.back()});
}

// What a rank other than the first has seen is sent to the first at the next meeting, if it is logged.
void TttScorer::tell(TttEvent event) {
  if (listener_) listener_->on_event(event);
  if (buffers_events()) buffered_events_.push_back(std::move(event));
}

}  // namespace mulligan
