#include "framework/data/loader.h"

#include <algorithm>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/philox.h"
#include "framework/data/documents.h"

namespace mulligan {

Loader::Loader(LoaderOptions options) : options_(std::move(options)) {
  config_error_if(
      options_.row_tokens < 1 || options_.row_tokens >= (1 << 30) || options_.max_segment_tokens < 0,
      "a micro-batch of {} tokens with segments of at most {} is not possible; both count tokens",
      options_.row_tokens, options_.max_segment_tokens);
  config_error_if(options_.world_size < 1 || options_.rank < 0 || options_.rank >= options_.world_size,
                  "rank {} of {} is not a valid rank", options_.rank, options_.world_size);
  data_error_if(options_.shards.empty(), "no training shards were given; run 'mulligan prepare' first");

  const std::int64_t segment = options_.max_segment_tokens;
  if (shuffles() && segment > 0 && options_.row_tokens % segment == 0)
    pieces_ = options_.row_tokens / segment;
  for (const auto& path : options_.shards) {
    Source source{Shard(path), 0};
    if (!streams() && options_.bos_id != kNoDocuments)
      source.first_bos = first_document(source.shard, options_.bos_id).value_or(0);
    sources_.push_back(std::move(source));
  }
  double weights = 0;
  for (const LoaderPart& part : options_.parts) weights += part.weight;
  std::size_t first = 0;
  for (const LoaderPart& part : options_.parts) {
    streams_.emplace_back(first, part.shards, part.weight / weights);
    first += part.shards;
  }
  if (streams_.empty()) {
    streams_.emplace_back(0, sources_.size(), 1);
  } else if (first != sources_.size() || !(weights > 0) ||
             std::ranges::any_of(streams_, [](const Stream& stream) { return stream.shards == 0; })) {
    throw config_error("parts of {} shards with weights of {} in all do not make {} shards", first, weights,
                       sources_.size());
  }
  if (!options_.parts.empty()) position_.parts.resize(streams_.size());
  if (options_.masking) masking_.emplace(*options_.masking, "train");
  set_group_spans(options_.group_spans == 0 ? options_.world_size : options_.group_spans);
  span_.resize(static_cast<std::size_t>(span_tokens()));
}

void Loader::set_group_spans(std::int64_t spans) {
  config_error_if(spans < 1 || spans % options_.world_size != 0 || spans > (std::int64_t{1} << 30),
                  "{} micro-batches cannot be dealt to {} ranks; choose a multiple of them.", spans,
                  options_.world_size);
  for (const Source& source : sources_) {
    data_error_if(
        streams() && source.shard.token_count() <= spans * span_step(),
        "shard '{}' has {} tokens, fewer than the {} of one step, and in stream order no step goes on in another "
        "shard; leave it out, or use smaller batches",
        source.shard.path().string(), source.shard.token_count(), spans * span_step() + 1);
  }
  const std::int64_t before = options_.group_spans;
  options_.group_spans = spans;
  std::int64_t per_epoch = 0;
  for (const Stream& stream : streams_) {
    if (stream.share == 0) continue;
    std::int64_t groups = 0, longest = 0, all = 0;
    for (std::size_t i = 0; i < stream.shards; ++i) {
      const Source& source = sources_[stream.first + i];
      all += spans_in(source);
      longest = std::max(longest, source.shard.token_count() - source.first_bos);
      const std::int64_t here = groups_in(stream.first + i);
      groups += here;
      // Of a part a group takes some spans only.
      per_epoch += options_.parts.empty() && !shuffles() ? here * spans : spans_in(source);
    }
    if (shuffles() ? all >= spans * pieces_ : groups > 0) continue;
    const std::int64_t group = group_tokens();
    options_.group_spans = before;
    const std::string part =
        options_.parts.empty()
            ? ""
            : fmt::format(" of '{}'",
                          options_.parts[static_cast<std::size_t>(&stream - streams_.data())].name);
    data_error_if(
        shuffles(),
        "the training shards{} hold {} rows of {} tokens, fewer than the {} of one step; use smaller batches or more text",
        part, all / pieces_, options_.row_tokens, spans);
    throw data_error(
        "no training shard{} holds the {} tokens of one step ({} micro-batches x {} tokens): the longest of "
        "{} shards has {} from its first document on; use smaller batches or more text",
        part, group, spans, span_tokens(), stream.shards, longest);
  }
  spans_per_epoch_ = per_epoch / pieces_;
  row_in_group_ = 0;
}

const Loader::Source& Loader::source_of(const Stream& stream, std::int64_t visit) const {
  return sources_[stream.first + static_cast<std::size_t>(visit % static_cast<std::int64_t>(stream.shards))];
}

std::int64_t Loader::spans_in(const Source& source) const {
  return (source.shard.token_count() - source.first_bos - (streams() ? 1 : 0)) / span_step();
}

// The piece that comes when `count` pieces of `stream` have been read.
Loader::Span Loader::shuffled_piece(Stream& stream, std::int64_t count) {
  const std::span<const Source> sources(sources_.data() + stream.first, stream.shards);
  const auto add = [&](std::int64_t sum, const Source& source) { return sum + spans_in(source); };
  const std::int64_t all = std::accumulate(sources.begin(), sources.end(), std::int64_t{0}, add);
  if (stream.dealt != count / all) {
    stream.dealt = count / all;
    stream.deal.resize(static_cast<std::size_t>(all));
    std::iota(stream.deal.begin(), stream.deal.end(), 0U);
    const auto part = &stream - streams_.data();
    const PhiloxStream draws(options_.seed, fmt::format("data.order/{}/{}", part, stream.dealt));
    for (std::size_t left = stream.deal.size(); left > 1; --left) {  // Fisher and Yates
      const auto drawn = static_cast<std::size_t>(draws.uniform(left) * static_cast<double>(left));
      std::swap(stream.deal[left - 1], stream.deal[drawn]);
    }
  }
  std::int64_t number = stream.deal[static_cast<std::size_t>(count % all)];
  const Source* source = sources.data();
  for (; number >= spans_in(*source); ++source) number -= spans_in(*source);
  return {source, number};
}

// Tokens and targets of `batch` from position `at` on.
void Loader::read(const Span& span, std::int64_t at, Batch& batch) {
  const Source& source = *span.source;
  const std::int64_t start = source.first_bos + span.number * span_step();
  source.shard.read(start, span_);
  const auto outside = std::find_if(span_.begin(), span_.end(),
                                    [&](std::uint16_t token) { return token >= options_.vocabulary; });
  if (outside != span_.end()) {
    throw data_error(
        "shard '{}' has token {} at position {}, outside the vocabulary of {}; it was made with "
        "another tokenizer",
        source.shard.path().string(), *outside, start + (outside - span_.begin()), options_.vocabulary);
  }
  std::copy(span_.begin(), span_.end() - 1, batch.tokens.begin() + at);
  std::copy(span_.begin() + 1, span_.end(), batch.targets.begin() + at);
}

// Groups that a pass takes from a shard. In stream order all but the first shard are entered whatever they hold,
// so that one of exactly a group gives that group, and a group that ends with its shard is otherwise left out.
std::int64_t Loader::groups_in(std::size_t source) const {
  if (!streams()) return spans_in(sources_[source]) / options_.group_spans;
  const std::int64_t tokens = sources_[source].shard.token_count();
  return std::max<std::int64_t>((tokens - 2) / (group_tokens() - 1), source == 0 ? 0 : 1);
}

// Leaves the present shard, and further ones, while what the group takes does not fit. Ends because
// set_group_spans() found a shard that holds a whole group from its start.
void Loader::settle(Stream& stream) const {
  if (streams()) {
    // Only where something was read of it, or it is the first, can a shard be left before it gives a group.
    const bool asks = stream.at.visit_spans > 0 || stream.at.shard_visits == 0;
    const std::int64_t next = (stream.at.visit_spans + stream.taken) * span_step() + 1;
    if (!asks || next < source_of(stream, stream.at.shard_visits).shard.token_count()) return;
    data_error_if(
        stream.at.shard_visits + 1 == static_cast<std::int64_t>(stream.shards),
        "the training text ends after {} steps' batches of {} tokens, and in stream order it does not begin "
        "again; name more shards or lower train.steps",
        position_.consumed_spans / options_.group_spans, group_tokens() - 1);
    ++stream.at.shard_visits;
    stream.at.visit_spans = 0;
    return;
  }
  const auto fits = [&] {
    return stream.at.visit_spans + stream.taken <= spans_in(source_of(stream, stream.at.shard_visits));
  };
  while (!fits()) {
    ++stream.at.shard_visits;
    stream.at.visit_spans = 0;
  }
}

// Which stream each span of the coming group is taken from: the one that lags most next its share, the
// first of equals.
void Loader::deal_group() {
  std::int64_t counted = 0;
  for (Stream& stream : streams_) {
    stream.taken = 0;
    counted += stream.at.counted;
  }
  group_.clear();
  for (std::int64_t span = 0; span < options_.group_spans; ++span) {
    const auto lag = [&](const Stream& stream) {
      return stream.share * static_cast<double>(counted + span + 1) -
             static_cast<double>(stream.at.counted + stream.taken);
    };
    std::size_t chosen = streams_.size();
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i].share > 0 && (chosen == streams_.size() || lag(streams_[i]) > lag(streams_[chosen])))
        chosen = i;
    }
    group_.push_back({chosen, streams_[chosen].taken++});
  }
  for (Stream& stream : streams_) {
    if (stream.taken > 0 && !shuffles()) settle(stream);
  }
}

void Loader::next(Batch& batch) {
  if (row_in_group_ == 0) deal_group();
  const std::int64_t rows = options_.group_spans / options_.world_size;
  const Place& place = group_[static_cast<std::size_t>(options_.rank * rows + row_in_group_)];
  Stream& stream = streams_[place.stream];
  const auto row_tokens = static_cast<std::size_t>(options_.row_tokens);
  batch.reserve(options_.row_tokens);
  if (shuffles()) {
    const std::int64_t first = (stream.at.spans + place.span) * pieces_;
    for (std::int64_t i = 0; i < pieces_; ++i) {
      read(shuffled_piece(stream, first + i), i * (span_tokens() - 1), batch);
    }
  } else {
    read({&source_of(stream, stream.at.shard_visits), stream.at.visit_spans + place.span}, 0, batch);
  }
  build_segments_at_bos(options_.bos_id, options_.max_segment_tokens, batch,
                        pieces_ == 1 ? 0 : options_.row_tokens / pieces_);
  if (masking_) {
    const std::int64_t row = position_.consumed_spans + options_.rank * rows + row_in_group_;
    const std::int64_t hidden = masking_->apply(static_cast<std::uint64_t>(row), batch.tokens, batch.targets);
    const std::int64_t wanted = chosen_tokens(options_.masking->share, row_tokens);
    data_error_if(hidden < wanted,
                  "a row of {} tokens has {} that can be hidden, for the others begin documents, "
                  "but the mean loss of a step is over {} of each row; lower model.masking.share.",
                  row_tokens, hidden, wanted);
  }
  if (++row_in_group_ < rows) return;
  row_in_group_ = 0;
  for (Stream& read : streams_) {
    if (!shuffles()) read.at.visit_spans += read.taken;
    read.at.spans += read.taken;
    read.at.counted += read.taken;
  }
  position_.consumed_spans += options_.group_spans;
  if (options_.parts.empty()) {
    position_.shard_visits = streams_[0].at.shard_visits;
    position_.visit_spans = streams_[0].at.visit_spans;
  }
  for (std::size_t i = 0; i < position_.parts.size(); ++i) position_.parts[i] = streams_[i].at;
}

void Loader::require_position(const Stream& stream, const PartPosition& at,
                              const LoaderPosition& position) const {
  // Beyond what any run reads, and far enough from the type's end to count on.
  const std::int64_t most = (std::int64_t{1} << 62) / pieces_;
  const bool ordered = at.spans >= at.visit_spans && at.visit_spans >= 0 && at.shard_visits >= 0 &&
                       at.shard_visits < most && at.spans < most && at.counted >= 0 &&
                       at.counted <= at.spans && position.consumed_spans >= at.spans &&
                       position.consumed_spans < most;
  const bool ended = streams() && at.shard_visits >= static_cast<std::int64_t>(stream.shards);
  const bool visited = at.shard_visits > 0 || at.visit_spans > 0;
  if (ordered && !ended && !(shuffles() && visited) &&
      at.visit_spans <= spans_in(source_of(stream, at.shard_visits)))
    return;
  throw data_error(
      "the saved data position ({} spans, visit {} of the shards, {} spans into it) does not "
      "fit the training shards; resume with the shards and the batch size of the saved run",
      position.consumed_spans, at.shard_visits, at.visit_spans);
}

void Loader::restore(const LoaderPosition& position) {
  std::vector<PartPosition> parts = position.parts;
  data_error_if(
      parts.size() != options_.parts.size(),
      "the saved data position is one of {} parts of the training text, but there are {}; resume with "
      "the [[data.mix]] of the saved run",
      parts.size(), options_.parts.size());
  if (parts.empty()) {
    parts.push_back(
        {position.shard_visits, position.visit_spans, position.consumed_spans, position.consumed_spans});
  }
  for (std::size_t i = 0; i < parts.size(); ++i) require_position(streams_[i], parts[i], position);
  for (std::size_t i = 0; i < parts.size(); ++i) streams_[i].at = parts[i];
  position_ = position;
  row_in_group_ = 0;
}

LoaderPosition Loader::position_after(std::int64_t spans) const {
  config_error_if(spans < 0 || spans % options_.group_spans != 0 || !options_.parts.empty(),
                  "{} consumed spans are not whole groups of {} of one stream", spans, options_.group_spans);
  LoaderPosition position{spans, 0, 0};
  if (spans == 0 || shuffles()) return position;
  data_error_if(streams() && spans > spans_per_epoch_,
                "the training text has {} batches of {} tokens in stream order, but {} are asked for",
                spans_per_epoch_ / options_.group_spans, group_tokens() - 1, spans / options_.group_spans);
  const std::int64_t epochs =
      (spans - 1) / spans_per_epoch_;  // a finished pass is left by the next read only
  position.shard_visits = epochs * static_cast<std::int64_t>(sources_.size());
  std::int64_t rest = spans - epochs * spans_per_epoch_;
  for (const Source& source : sources_) {
    const std::int64_t here =
        groups_in(static_cast<std::size_t>(&source - sources_.data())) * options_.group_spans;
    if (rest <= here) break;
    rest -= here;
    ++position.shard_visits;
  }
  position.visit_spans = rest;
  return position;
}

}  // namespace mulligan
