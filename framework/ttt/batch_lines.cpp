#include "framework/ttt/batch_lines.h"

#include <algorithm>

#include "framework/ttt/ttt_text.h"

namespace mulligan {
namespace {

double tokens_of(const DocumentPlan& plan, std::int64_t queue) {
  std::int64_t tokens = 0;
  for (const int number : plan.queue[static_cast<std::size_t>(queue)].batch.documents)
    tokens += plan.targets(number);
  return static_cast<double>(tokens);
}

}  // namespace

void BatchLines::begin(const TttRun& run, std::size_t done) {
  plan_ = &run.plan();
  ProgressPhase phase{.what = "test-time training", .unit = "tokens"};
  for (std::size_t i = 0; i < run.own_batches().size(); ++i) {
    const std::int64_t queue = run.own_batches()[i];
    const double tokens = tokens_of(*plan_, queue);
    tokens_[queue] = tokens;
    phase.total += tokens;
    if (i < done) done_ += tokens;
  }
  phase.done = done_;
  phase.plain_lines = false;  // the batches' own
  phase.ticks = true;         // the causality probes come first
  progress_.emplace(&log_, phase);
}

void BatchLines::on_batch(const TttBatchReport& batch) {
  const std::size_t batches = plan_->queue.size();
  const std::size_t every = std::max<std::size_t>(batches / 20, 1);
  if ((static_cast<std::size_t>(batch.queue) + 1) % every == 0) log_.line(batch_text(batch, batches));
}

void BatchLines::on_phase(const TttPhaseReport& phase) {
  log_.line(phase_text(phase));
}

void BatchLines::on_event(const TttEvent& event) {
  const auto own = tokens_.find(event.queue);
  if (event.kind == TttEventKind::book && progress_ && own != tokens_.end()) {
    if (event.queue != under_way_) {
      done_ += under_way_ < 0 ? 0 : tokens_.at(under_way_);
      under_way_ = event.queue;
      in_batch_ = 0;
    }
    // A document's last chunk may be shorter: never more than the batch has.
    const PlannedBatch& batch = plan_->queue[static_cast<std::size_t>(event.queue)];
    in_batch_ += static_cast<double>(static_cast<std::int64_t>(event.documents.size()) * batch.chunk_tokens);
    progress_->set(done_ + std::min(in_batch_, own->second));
  }
  if (event.kind != TttEventKind::collapse) return;
  log_.print(
      "warning: after batch {} test-time training scores more than {} bits per byte worse than the plain "
      "model on the same documents; more weight decay or a lower rate in [ttt.optimizer] keeps adapters "
      "from drifting{}",
      event.queue + 1, config_.collapse_margin,
      config_.on_collapse == OnCollapse::fallback ? "; the rest is scored without adapters" : "");
}

}  // namespace mulligan
