#include "framework/data/loader.h"

#include <algorithm>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// Position of the first BOS of a shard; 0 where it has none.
std::int64_t first_bos(const Shard& shard, int bos_id) {
  constexpr std::int64_t block_tokens = 1 << 19;
  std::vector<std::uint16_t> block;
  for (std::int64_t begin = 0; begin < shard.token_count(); begin += block_tokens) {
    block.resize(static_cast<std::size_t>(std::min(block_tokens, shard.token_count() - begin)));
    shard.read(begin, block);
    const auto bos = std::find(block.begin(), block.end(), bos_id);
    if (bos != block.end()) return begin + (bos - block.begin());
  }
  return 0;
}

}  // namespace

Loader::Loader(LoaderOptions options) : options_(std::move(options)) {
  if (options_.row_tokens < 1 || options_.row_tokens >= (1 << 30) || options_.max_segment_tokens < 0) {
    throw config_error(
        "a micro-batch of {} tokens with segments of at most {} is not possible; both count tokens",
        options_.row_tokens, options_.max_segment_tokens);
  }
  if (options_.world_size < 1 || options_.rank < 0 || options_.rank >= options_.world_size) {
    throw config_error("rank {} of {} is not a valid rank", options_.rank, options_.world_size);
  }
  if (options_.shards.empty())
    throw data_error("no training shards were given; run 'mulligan prepare' first");

  for (const auto& path : options_.shards) {
    Source source{Shard(path), 0};
    source.first_bos = first_bos(source.shard, options_.bos_id);
    sources_.push_back(std::move(source));
  }
  set_group_spans(options_.group_spans == 0 ? options_.world_size : options_.group_spans);
  span_.resize(static_cast<std::size_t>(span_tokens()));
}

void Loader::set_group_spans(std::int64_t spans) {
  if (spans < 1 || spans % options_.world_size != 0 || spans > (std::int64_t{1} << 30)) {
    throw config_error("{} micro-batches cannot be dealt to {} ranks; choose a multiple of them.", spans,
                       options_.world_size);
  }
  const std::int64_t before = options_.group_spans;
  options_.group_spans = spans;
  std::int64_t per_epoch = 0, longest = 0;
  for (const Source& source : sources_) {
    longest = std::max(longest, source.shard.token_count() - source.first_bos);
    per_epoch += groups_in(source) * spans;
  }
  if (per_epoch == 0) {
    const std::int64_t group = group_tokens();
    options_.group_spans = before;
    throw data_error(
        "no training shard holds the {} tokens of one step ({} micro-batches x {} tokens): the longest of "
        "{} shards has {} from its first document on; use smaller batches or more text",
        group, spans, span_tokens(), sources_.size(), longest);
  }
  spans_per_epoch_ = per_epoch;
  row_in_group_ = 0;
}

const Loader::Source& Loader::source_of(std::int64_t visit) const {
  return sources_[static_cast<std::size_t>(visit % static_cast<std::int64_t>(sources_.size()))];
}

std::int64_t Loader::groups_in(const Source& source) const {
  return (source.shard.token_count() - source.first_bos) / group_tokens();
}

// Leaves the present shard, and further ones, while the next group does not fit. Ends because
// set_group_spans() found a shard that holds one from its start.
void Loader::settle() {
  const auto fits = [&] {
    const Source& source = source_of(position_.shard_visits);
    return source.first_bos + position_.visit_spans * span_tokens() + group_tokens() <=
           source.shard.token_count();
  };
  while (!fits()) {
    ++position_.shard_visits;
    position_.visit_spans = 0;
  }
}

void Loader::next(Batch& batch) {
  if (row_in_group_ == 0) settle();
  const Source& source = source_of(position_.shard_visits);
  const std::int64_t rows = options_.group_spans / options_.world_size;
  const std::int64_t span = position_.visit_spans + options_.rank * rows + row_in_group_;
  const std::int64_t start = source.first_bos + span * span_tokens();
  source.shard.read(start, span_);
  const auto row_tokens = static_cast<std::size_t>(options_.row_tokens);
  const auto outside = std::find_if(span_.begin(), span_.end(),
                                    [&](std::uint16_t token) { return token >= options_.vocabulary; });
  if (outside != span_.end()) {
    throw data_error(
        "shard '{}' has token {} at position {}, outside the vocabulary of {}; it was made with "
        "another tokenizer",
        source.shard.path().string(), *outside, start + (outside - span_.begin()), options_.vocabulary);
  }
  batch.reserve(options_.row_tokens);
  std::copy_n(span_.begin(), row_tokens, batch.tokens.begin());
  std::copy_n(span_.begin() + 1, row_tokens, batch.targets.begin());
  build_segments_at_bos(options_.bos_id, options_.max_segment_tokens, batch);
  if (++row_in_group_ < rows) return;
  row_in_group_ = 0;
  position_.visit_spans += options_.group_spans;
  position_.consumed_spans += options_.group_spans;
}

void Loader::restore(const LoaderPosition& position) {
  // Beyond what any run reads, and far enough from the type's end to count on.
  constexpr std::int64_t most = std::int64_t{1} << 62;
  const bool ordered = position.consumed_spans >= position.visit_spans && position.visit_spans >= 0 &&
                       position.shard_visits >= 0 && position.shard_visits < most &&
                       position.consumed_spans < most;
  const auto available = [&] {
    const Source& source = source_of(position.shard_visits);
    return (source.shard.token_count() - source.first_bos) / span_tokens();
  };
  if (!ordered || position.visit_spans > available()) {
    throw data_error(
        "the saved data position ({} spans, visit {} of the shards, {} spans into it) does not fit the "
        "training shards; "
        "resume with the shards and the batch size of the saved run",
        position.consumed_spans, position.shard_visits, position.visit_spans);
  }
  position_ = position;
  row_in_group_ = 0;
}

LoaderPosition Loader::position_after(std::int64_t spans) const {
  if (spans < 0 || spans % options_.group_spans != 0) {
    throw config_error("{} consumed spans are not whole groups of {}", spans, options_.group_spans);
  }
  LoaderPosition position{spans, 0, 0};
  if (spans == 0) return position;
  const std::int64_t epochs =
      (spans - 1) / spans_per_epoch_;  // a finished pass is left by the next read only
  position.shard_visits = epochs * static_cast<std::int64_t>(sources_.size());
  std::int64_t rest = spans - epochs * spans_per_epoch_;
  for (const Source& source : sources_) {
    const std::int64_t here = groups_in(source) * options_.group_spans;
    if (rest <= here) break;
    rest -= here;
    ++position.shard_visits;
  }
  position.visit_spans = rest;
  return position;
}

}  // namespace mulligan
