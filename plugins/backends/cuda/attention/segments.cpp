#include "plugins/backends/cuda/attention/segments.h"

#include <algorithm>
#include <bit>

namespace mulligan::cuda {
namespace {

constexpr std::int64_t kFewestRows = 16, kShortest = 128, kFewestTokens = 64;

std::int64_t power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

}  // namespace

std::optional<SegmentSummary> summarise(std::span<const std::int32_t> boundaries, std::int64_t tokens) {
  if (boundaries.size() < 2 || boundaries.front() != 0 || boundaries.back() != tokens) return {};
  SegmentSummary summary;
  const std::int64_t first = boundaries[1] - boundaries[0];
  summary.equal = true;
  for (std::size_t i = 0; i + 1 < boundaries.size(); ++i) {
    const std::int64_t length = std::int64_t{boundaries[i + 1]} - boundaries[i];
    if (length < 0) return {};
    if (length > 0) summary.count = static_cast<std::int64_t>(i) + 1;
    summary.longest = std::max(summary.longest, length);
    summary.equal = summary.equal && length == first;
  }
  return summary;
}

AttentionBucket bucket_of(const SegmentSummary& summary, std::int64_t tokens) {
  if (summary.equal) return {summary.count, summary.longest, false};
  return {power_of_two(std::max(summary.count, kFewestRows)),
          std::min(power_of_two(std::max(summary.longest, kShortest)), tokens), true};
}

AttentionBucket largest_bucket(std::int64_t segments, std::int64_t tokens) {
  const std::int64_t rows = std::min(segments, tokens / kFewestTokens);
  return {power_of_two(std::max(rows, kFewestRows)), tokens, true};
}

}  // namespace mulligan::cuda
