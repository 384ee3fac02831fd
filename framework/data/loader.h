// The training loader: one global cursor over the shards, one packed row per call.
//
// The stream is cut into groups of spans of row_tokens + 1 tokens. Each of the N ranks reads its own Nth of a group, spans that lie side
// by side, so a group does not depend on the number of ranks. The cursor of a shard starts at its first BOS. The shard is left, and its
// tail dropped, when the next group does not fit. After the last shard the first follows. A training step reads one group.
// (docs/record_run.md#reading-order, fixture `loader`: groups of one span for each rank.)
//
// In stream order (docs/arena.md) a span begins one token, its last target, before the end of the one before, and shards are read from
// their first token on. A shard is left when not even one token would remain after the next group. A shard that is entered always gives
// a group. After the last shard the text ends, and next() throws.
//
// In shuffled order a row is made of pieces of max_segment_tokens if these divide it. A pass reads every piece (and the token after it) of
// all shards once, by a permutation of its own: seed, part and pass decide, not ranks or steps. A step may reach into the next pass.
//
// Each part is such a stream of its own. Each span of a group is taken from the part that is furthest below its weight (smooth weighted
// round robin): after n spans every part has read n times its share, give or take less than one span per part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/data_config.h"
#include "framework/data/masking.h"
#include "framework/data/segments.h"
#include "framework/data/shard.h"

namespace mulligan {

// A part of the shards, read in proportion to its weight.
struct LoaderPart {
  std::string name;
  std::size_t shards = 0;  // so many, from the end of the part before on
  double weight = 1;       // 0: not read
};

struct LoaderOptions {
  std::vector<std::filesystem::path> shards;  // in reading order
  std::int64_t row_tokens = 0;                // T of one micro-batch of one rank
  std::int64_t max_segment_tokens = 0;        // longest attention segment; 0: documents are never cut
  int world_size = 1;
  int rank = 0;
  int bos_id = 1;  // or kNoDocuments
  DataOrder order = DataOrder::spans;
  std::uint64_t seed = 0;           // of shuffled order
  int vocabulary = kMaxVocabulary;  // a token at or above it is an error
  std::int64_t group_spans = 0;     // a multiple of world_size; 0: one for each rank
  std::vector<LoaderPart> parts;    // empty: all shards are one
  // Hides tokens of each row and makes them its targets; absent: targets are the next tokens. What is hidden
  // of a row depends on how many rows all ranks have read before it, not on the ranks. Every row has
  // chosen_tokens() targets: one with fewer tokens that can be hidden is an error.
  std::optional<MaskingOptions> masking = {};
};

// Where one of several parts stands.
struct PartPosition {
  std::int64_t shard_visits = 0, visit_spans = 0;  // as below, of this part
  std::int64_t spans = 0;                          // read from it since the start of training
  std::int64_t counted = 0;                        // the same since the weights in force were set
  bool operator==(const PartPosition&) const = default;
};

// Where the stream stands, in units that do not depend on the ranks: before a group. Saved in checkpoints;
// restoring it under another world size continues at the same token: none is read twice or skipped.
struct LoaderPosition {
  std::int64_t consumed_spans = 0;  // read by all ranks since the start of training
  std::int64_t shard_visits = 0;    // shards entered before the present one, over all passes through the data
  std::int64_t visit_spans = 0;     // spans read, by all ranks, from the present visit of the present shard
  // With parts, whose own visits these are; shard_visits and visit_spans are then 0, as they are in shuffled order.
  std::vector<PartPosition> parts = {};

  bool operator==(const LoaderPosition&) const = default;
};

class Loader {
 public:
  // Opens and checks every shard. Throws data_error when a shard is bad or none holds a group, and
  // config_error for sizes or ranks out of range.
  explicit Loader(LoaderOptions options);

  // Fills `batch` with this rank's next row and advances. No allocation once `batch` has been used or
  // reserved. Throws data_error naming shard and token when a token is outside the vocabulary, when the shard
  // can no longer be read, or after the end of a text in stream order; the stream then has not advanced.
  void next(Batch& batch);

  const LoaderOptions& options() const { return options_; }
  // Before the present group as long as rows of it are left.
  LoaderPosition position() const { return position_; }
  // Groups of `spans` from the position on; rows left of the present group are read again. Throws
  // config_error unless it is a positive multiple of the world size, and data_error where no shard holds such
  // a group.
  void set_group_spans(std::int64_t spans);
  // Continues from a saved position. Throws data_error when it does not fit the shards.
  void restore(const LoaderPosition& position);
  // The position after `spans` consumed spans, as if that many had been read from the start in groups like
  // these. Throws config_error unless spans is a non-negative multiple of a group's, and with parts; data_error
  // where a text in stream order has fewer.
  LoaderPosition position_after(std::int64_t spans) const;
  // Spans in one pass over all shards, in groups like these; with parts over those that are read.
  std::int64_t spans_per_epoch() const { return spans_per_epoch_; }

 private:
  struct Source {
    Shard shard;
    std::int64_t first_bos = 0;
  };
  bool streams() const { return options_.order == DataOrder::stream; }
  bool shuffles() const { return options_.order == DataOrder::shuffled; }
  std::int64_t span_tokens() const { return options_.row_tokens / pieces_ + 1; }
  // From the beginning of a span to that of the next.
  std::int64_t span_step() const { return options_.row_tokens / pieces_ + (streams() ? 0 : 1); }
  std::int64_t group_tokens() const { return span_step() * options_.group_spans + (streams() ? 1 : 0); }
  // A stream: its shards, and where it stands.
  struct Stream {
    Stream(std::size_t first_shard, std::size_t count, double part)
        : first(first_shard), shards(count), share(part) {}
    std::size_t first = 0, shards = 0;  // of sources_
    double share = 1;                   // of the spans
    PartPosition at;
    std::int64_t taken = 0;  // spans of the present group
    // In shuffled order: pieces of all its shards, numbered through, in the order of the pass `dealt`.
    std::vector<std::uint32_t> deal;
    std::int64_t dealt = -1;
  };
  struct Span {
    const Source* source;
    std::int64_t number;  // among those of its shard
  };
  Span shuffled_piece(Stream& stream, std::int64_t count);
  void read(const Span& span, std::int64_t at, Batch& batch);
  const Source& source_of(const Stream& stream, std::int64_t visit) const;
  std::int64_t spans_in(const Source& source) const;
  std::int64_t groups_in(std::size_t source) const;
  void settle(Stream& stream) const;
  void deal_group();
  void require_position(const Stream& stream, const PartPosition& at, const LoaderPosition& position) const;

  LoaderOptions options_;
  std::vector<Source> sources_;
  std::int64_t pieces_ = 1;          // of a row
  std::vector<std::uint16_t> span_;  // the tokens of one row or piece, as they are stored
  std::int64_t spans_per_epoch_ = 0;
  LoaderPosition position_;
  std::vector<Stream> streams_;
  std::optional<Masking> masking_;
  struct Place {  // of a span of the present group
    std::size_t stream = 0;
    std::int64_t span = 0;  // of those of its stream
  };
  std::vector<Place> group_;
  std::int64_t row_in_group_ = 0;  // rows of the present group that this rank has read
};

}  // namespace mulligan
