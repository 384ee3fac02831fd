// TttRun between two batches: what it would need to go on in another process.
#include <algorithm>
#include <cmath>
#include <span>

#include "framework/core/error.h"
#include "framework/ttt/ttt_run.h"

namespace mulligan {

namespace {

// A sum that a state states is that of the losses in it.
void require_booked(double stated, double booked) {
  if (std::abs(booked - stated) <= 1e-6 * std::abs(booked)) return;
  throw data_error(
      "the saved state of test-time training states {} nats, but its losses are {}; start without --resume.",
      stated, booked);
}

}  // namespace

std::vector<std::string> TttRun::standing_tensors() const {
  std::vector<std::string> names;
  const auto reusable = sets_.find(setup_.config.batch_documents);
  if (reusable != sets_.end()) names = reusable->second->inherited();
  if (!report_.phases.empty()) {
    for (const ParameterLayout& layout : model_.layouts) names.push_back(master_name(layout.spec.name));
  }
  return names;
}

TttStanding TttRun::standing() const {
  TttStanding standing;
  standing.done.assign(own_.begin(), own_.begin() + static_cast<std::ptrdiff_t>(done_));
  standing.report = report_;
  for (const auto& [queue, batch] : pending_) standing.pending.push_back(batch);
  standing.sums = book_.sums();
  standing.reference = reference_;
  standing.losses = book_.losses();
  standing.untransformed = plain_;
  standing.plain_losses = plain_book_;
  for (const std::string& name : standing_tensors()) {
    std::vector<std::byte>& bytes = standing.tensors[name];
    bytes.resize(static_cast<std::size_t>(model_.store.type(name).bytes()));
    model_.store.download(name, bytes);
  }
  return standing;
}

void TttRun::restore(const TttStanding& from) {
  if (from.done.size() >= own_.size() ||
      !std::ranges::equal(from.done, std::span(own_).first(from.done.size())) ||
      from.losses.size() != data_.tokens.size() || from.plain_losses.size() != plain_book_.size()) {
    throw data_error("the saved state of test-time training is of other documents; start without --resume.");
  }
  report_ = from.report;
  done_ = from.done.size();
  reference_ = from.reference;
  for (const TttPendingBatch& batch : from.pending) pending_[batch.queue] = batch;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const std::int64_t queue : from.done) {
    for (const int number : plan_.queue[static_cast<std::size_t>(queue)].batch.documents) {
      const std::int64_t first = plan_.document(number).start + 1;
      ranges.emplace_back(first, first + plan_.targets(number));
    }
  }
  book_.restore(from.losses, from.sums, ranges);
  double nats = 0, reported = 0;
  for (const auto& [first, last] : ranges) nats += book_.range(first, last).loss_nats;
  require_booked(from.sums.loss_nats, nats);
  for (const TttBatchReport& batch : report_.batches) {
    for (const int number : plan_.queue[static_cast<std::size_t>(batch.queue)].batch.documents) {
      const std::int64_t first = plan_.document(number).start + 1;
      reported += book_.range(first, first + plan_.targets(number)).loss_nats;
    }
    require_booked(batch.running.loss_nats, reported);
  }
  plain_ = from.untransformed;
  plain_book_ = from.plain_losses;
  for (const std::int64_t queue : from.done) tell_again(queue);
  // The stretches before the one under way are done as a whole.
  for (; own_[done_] >= lanes_.stretches[stretch_].end; ++stretch_) note_scored(lanes_.stretches[stretch_]);
  for (const std::string& name : standing_tensors()) {
    const auto saved = from.tensors.find(name);
    if (saved == from.tensors.end() ||
        static_cast<std::int64_t>(saved->second.size()) != model_.store.type(name).bytes()) {
      throw data_error(
          "the saved state of test-time training holds no tensor '{}' of this model; start without --resume.",
          name);
    }
    model_.store.upload(name, saved->second);
  }
  if (!report_.phases.empty()) refresh_copies(model_.store, model_.layouts);
}

}  // namespace mulligan
