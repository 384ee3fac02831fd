#include "framework/train/training_rows.h"

#include "framework/core/error.h"
#include "framework/train/resume.h"

namespace mulligan {

void TrainingRows::read_as(const Phase& phase) {
  LoaderOptions options = loader_options(config_, data_, rank_, world_size_);
  options.max_segment_tokens = phase.sequence_length;
  const LoaderOptions* now = stream_ ? &stream_->loader().options() : nullptr;
  bool same_weights = true;
  for (std::size_t i = 0; i < options.parts.size(); ++i) {
    options.parts[i].weight = phase.mix_weights[i];
    same_weights = same_weights && now && now->parts[i].weight == phase.mix_weights[i];
  }
  if (now && same_weights && now->max_segment_tokens == phase.sequence_length) return;
  require_unwritten();
  auto rows = std::make_unique<Prefetcher>(std::make_unique<Loader>(options),
                                           static_cast<std::size_t>(config_.data.prefetch));
  if (stream_) {
    LoaderPosition position = stream_->position();
    for (PartPosition& part : position.parts) part.counted = same_weights ? part.counted : 0;
    rows->restore(position);
  }
  stream_ = std::move(rows);
}

void TrainingRows::require_unwritten() const {
  if (config_.ledger.rules != LedgerRules::strict || !stream_) return;
  for (std::size_t i = 0; i < data_.shards.size(); ++i) {
    if (InputFile(data_.shards[i]).stamp() == data_.stamps[i]) continue;
    throw run_error(
        "the training shard '{}' was changed while the run was reading it, so it is unknown what the run "
        "was trained on; under ledger.rules = \"strict\" the run is refused as a record.",
        data_.shards[i].string());
  }
}

void TrainingRows::require_enough() const {
  const Loader& loader = stream_->loader();
  const std::int64_t spans = config_.train.steps * config_.train.micro_batches;
  if (config_.data.order != DataOrder::stream || spans <= loader.spans_per_epoch()) return;
  throw data_error(
      "data.train = '{}' holds {} batches of {} tokens in stream order, in which nothing is read twice, but "
      "train.steps is {}; name more shards or lower train.steps",
      config_.data.train, loader.spans_per_epoch() / config_.train.micro_batches,
      config_.train.tokens_per_step, config_.train.steps);
}

double TrainingRows::epochs() const {
  return static_cast<double>(stream_->position().consumed_spans) /
         static_cast<double>(stream_->loader().spans_per_epoch());
}

std::vector<std::pair<std::string, double>> TrainingRows::mix_shares() const {
  const LoaderPosition read = stream_->position();
  std::vector<std::pair<std::string, double>> shares;
  for (std::size_t i = 0; i < read.parts.size(); ++i) {
    shares.emplace_back(data_.parts[i].name,
                        static_cast<double>(read.parts[i].spans) / static_cast<double>(read.consumed_spans));
  }
  return shares;
}

}  // namespace mulligan
