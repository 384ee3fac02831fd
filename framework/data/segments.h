// A packed row of documents and its segment boundaries, as document-masked attention needs them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mulligan {

// The padded length of cu_seqlens is a multiple of this.
inline constexpr std::size_t kSegmentBucket = 64;

// One packed row of T positions. Position i may attend to j <= i inside the same segment only.
struct Batch {
  std::vector<std::int32_t> tokens;  // [T] inputs
  std::vector<std::int32_t>
      targets;  // [T] next token of each input; of masked rows what was hidden there, else -1
  std::vector<std::int32_t> cu_seqlens;  // segment starts, then T repeated up to a multiple of kSegmentBucket
  std::int32_t segment_count = 0;        // cu_seqlens[segment_count] == T is the last real boundary
  std::int32_t longest_segment = 0;      // tokens
  std::int64_t piece_tokens = 0;         // of the pieces from anywhere in the text that it is made of; 0: one

  // How many losses the row has: targets that are tokens.
  std::int64_t target_count() const;
  // Sizes the arrays for rows of T tokens so that filling them never allocates, whatever the
  // number of segments.
  void reserve(std::int64_t row_tokens);
};

// Fills cu_seqlens, segment_count and longest_segment. Segments start at 0 and at each of `starts`
// (ascending, below row_tokens); each is cut again every max_segment_tokens from its start (0: never).
void build_segments(std::span<const std::int32_t> starts, std::int64_t row_tokens,
                    std::int64_t max_segment_tokens, Batch& batch);

// In the place of the BOS token where none begins a document: attention crosses documents.
inline constexpr int kNoDocuments = -1;

// The same with the starts taken from the BOS tokens among batch.tokens; none for kNoDocuments. A row that is put together
// of pieces has a start every piece_tokens, too.
void build_segments_at_bos(int bos_id, std::int64_t max_segment_tokens, Batch& batch,
                           std::int64_t piece_tokens = 0);

// A packed row as parts that are computed one after the other, which takes less memory (train.micro_batch_parts).
class RowParts {
 public:
  struct Shape {
    std::int64_t row_tokens = 0, parts = 1;
    std::int64_t part_tokens = 0;      // of the longest possible part, what it sees before included
    std::int64_t longest_segment = 0;  // of a row, in tokens
    bool sees_before = true;  // a part begins with the token before it, for mixtures of neighbouring tokens
  };
  explicit RowParts(const Shape& shape);

  // The row itself where it is one part. Else parts of part_tokens tokens each, cut between segments, or of none where a
  // long segment takes two shares. What is seen before and what fills a part up lies in segments of its own and has no
  // targets (-1). Valid until the next call, which does not allocate.
  std::span<const Batch> of(const Batch& row);

 private:
  void fill(Batch& part, const Batch& row, std::size_t first, std::size_t last) const;

  Shape shape_;
  std::vector<Batch> parts_;
};

// The segments that packed rows can have, for a backend that makes something for each kind of them and takes
// long about it: shown to it before the training clock starts, so that no row makes it wait later.

// Calls `show` with boundaries (from 0 to row_tokens, rising) of rows of row_tokens tokens whose segments have
// up to longest_segment tokens: with the fewest segments and about one eighth more from row to row, up to one
// segment per token; and where each number of segments allows it the longest one at its limit, half of it, a
// quarter, and so on.
void show_possible_segments(std::int64_t row_tokens, std::int64_t longest_segment,
                            const std::function<void(std::span<const std::int32_t>)>& show);

}  // namespace mulligan
