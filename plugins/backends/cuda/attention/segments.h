// What the host knows of a row's segments, and the plans that this decides between.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace mulligan::cuda {

// Of boundaries cu[0..n]: segment i is [cu[i], cu[i + 1]).
struct SegmentSummary {
  std::int64_t count = 0;    // segments up to the last one that is not empty
  std::int64_t longest = 0;  // tokens
  bool equal = false;        // all n segments have the same length

  bool operator==(const SegmentSummary&) const = default;
};

// Nothing where the boundaries do not rise (or stay) from 0 to `tokens`.
std::optional<SegmentSummary> summarise(std::span<const std::int32_t> boundaries, std::int64_t tokens);

// The batch that a library's attention is planned for. Equal segments: exactly those, not packed. Otherwise
// rows and their longest length are rounded up to powers of two, from 16 and from 128 on (but never beyond
// `tokens`), so that a run over many different rows of documents makes a handful of plans.
struct AttentionBucket {
  std::int64_t rows = 0, longest = 0;
  bool packed = false;

  auto operator<=>(const AttentionBucket&) const = default;
};
AttentionBucket bucket_of(const SegmentSummary& summary, std::int64_t tokens);

// The bucket that none of `tokens` tokens in at most `segments` segments exceeds, short of segments under 64
// tokens on average: what has more than these is left to the own kernel, whose work does not grow with the
// number of segments.
AttentionBucket largest_bucket(std::int64_t segments, std::int64_t tokens);

}  // namespace mulligan::cuda
