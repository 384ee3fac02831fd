// The training loader: one global cursor over the shards, one packed row per call.
//
// A global micro-batch is world_size spans of row_tokens + 1 tokens; rank r reads the r-th span. The
// cursor of a shard starts at its first BOS; the shard is left, and its tail dropped, when the next
// global micro-batch does not fit. After the last shard the first follows.
// (docs/record_run.md#reading-order, fixture `loader`.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "framework/data/segments.h"
#include "framework/data/shard.h"

namespace mulligan {

struct LoaderOptions {
  std::vector<std::filesystem::path> shards;  // in reading order
  std::int64_t row_tokens = 0;                // T of one micro-batch of one rank
  std::int64_t max_segment_tokens = 0;        // longest attention segment; 0: documents are never cut
  int world_size = 1;
  int rank = 0;
  int bos_id = 1;
  int vocabulary = kMaxVocabulary;  // a token at or above it is an error
};

// Where the stream stands, in units that do not depend on the rank. Saved in checkpoints; restoring it under
// another world size continues at the same token: nothing is read twice and nothing is skipped.
struct LoaderPosition {
  std::int64_t consumed_spans =
      0;  // spans of row_tokens + 1 tokens read by all ranks since the start of training
  std::int64_t shard_visits = 0;  // shards entered before the present one, over all passes through the data
  std::int64_t visit_spans = 0;   // spans read, by all ranks, from the present visit of the present shard

  bool operator==(const LoaderPosition&) const = default;
};

class Loader {
 public:
  // Opens and checks every shard. Throws data_error when a shard is bad or none holds a global micro-batch,
  // and config_error for sizes or ranks out of range.
  explicit Loader(LoaderOptions options);

  // Fills `batch` with this rank's next row and advances. No allocation once `batch` has been used or
  // reserved. Throws data_error naming shard and token when a token is outside the vocabulary, or when the
  // shard can no longer be read; the stream then has not advanced.
  void next(Batch& batch);

  const LoaderOptions& options() const { return options_; }
  LoaderPosition position() const { return position_; }
  // Continues from a saved position. Throws data_error when it does not fit the shards.
  void restore(const LoaderPosition& position);
  // The position after `spans` consumed spans at this world size, as if that many had been read from the
  // start. Throws config_error unless spans is a non-negative multiple of the world size.
  LoaderPosition position_after(std::int64_t spans) const;
  // Spans in one pass over all shards at this world size.
  std::int64_t spans_per_epoch() const { return spans_per_epoch_; }

 private:
  struct Source {
    Shard shard;
    std::int64_t first_bos = 0;
  };
  std::int64_t span_tokens() const { return options_.row_tokens + 1; }
  std::int64_t group_tokens() const { return span_tokens() * options_.world_size; }
  const Source& source_of(std::int64_t visit) const;
  std::int64_t groups_in(const Source& source) const;
  void settle();

  LoaderOptions options_;
  std::vector<Source> sources_;
  std::vector<std::uint16_t> span_;  // the tokens of one row, as they are stored
  std::int64_t spans_per_epoch_ = 0;
  LoaderPosition position_;
};

}  // namespace mulligan
