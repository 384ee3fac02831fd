// TttRun between two batches: what it would need to go on in another process.
#include <algorithm>

#include "framework/core/error.h"
#include "framework/ttt/ttt_run.h"

namespace mulligan {

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
  standing.next_queue = next_queue_;
  standing.draw = draw_;
  standing.report = report_;
  standing.sums = book_.sums();
  standing.reference = reference_;
  standing.losses = book_.losses();
  for (const std::string& name : standing_tensors()) {
    std::vector<std::byte>& bytes = standing.tensors[name];
    bytes.resize(static_cast<std::size_t>(model_.store.type(name).bytes()));
    model_.store.download(name, bytes);
  }
  return standing;
}

void TttRun::restore(const TttStanding& from, PhasePlan& phases) {
  if (from.next_queue > static_cast<std::int64_t>(plan_.queue.size()) ||
      from.losses.size() != data_.tokens.size()) {
    throw data_error("the saved state of test-time training is of other documents; start without --resume.");
  }
  report_ = from.report;
  draw_ = from.draw;
  next_queue_ = from.next_queue;
  reference_ = from.reference;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::int64_t queue = 0; queue < from.next_queue; ++queue) {
    const DocumentBatch& batch = plan_.queue[static_cast<std::size_t>(queue)].batch;
    for (std::size_t slot = 0; slot < batch.documents.size(); ++slot) {
      const int number = batch.documents[slot];
      const std::int64_t first = plan_.document(number).start + 1;
      ranges.emplace_back(first, first + plan_.targets(number));
      scored_.push_back({batch.index, static_cast<int>(slot), number});
    }
    phases.due(static_cast<std::int64_t>(scored_.size()));
  }
  book_.restore(from.losses, from.sums, ranges);
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
