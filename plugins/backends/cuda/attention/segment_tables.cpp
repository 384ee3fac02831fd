#include "plugins/backends/cuda/attention/segment_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace mulligan::cuda {
namespace {

constexpr std::int64_t kFewestRows = 16, kMostWindows = 64, kShortest = 2048, kShortestWindow = 256,
                       kMostQuarterSteps = 2048, kMostRows = 32768;

std::int64_t power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

std::int64_t document_rows(std::int64_t value) {
  if (value > kMostQuarterSteps) return power_of_two(value);
  const std::int64_t step = std::max(kFewestRows, power_of_two(value)) / 8;  // values are above half of it
  return std::max((value + step - 1) / step * step, kFewestRows);
}

std::int64_t window_rows(std::int64_t count) {
  return count <= kFewestRows ? kFewestRows : kMostWindows;
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

AttentionBucket bucket_of(const SegmentSummary& summary) {
  // For a plain batch of such a length cuDNN's backward pass can give NaN (cudnn-frontend issue 628): the second
  // half of its last tile of keys is not hidden. Packed rows are hidden by their lengths.
  const bool half_tile = summary.longest % 128 == 64;
  if (!summary.equal || (summary.count > kMostWindows && half_tile))
    return {document_rows(summary.count), power_of_two(std::max(summary.longest, kShortest)), true};
  if (summary.count > kMostWindows) return {summary.count, summary.longest, false};
  return {window_rows(summary.count), power_of_two(std::max(summary.longest, kShortestWindow)), true};
}

std::int64_t most_rows(std::int64_t segments, std::int64_t tokens) {
  const std::int64_t documents = document_rows(std::min({segments, tokens, kMostRows}));
  return segments <= kMostWindows ? std::max(documents, window_rows(segments)) : documents;
}

void SegmentTables::watch(const void* address, std::int64_t tokens, std::vector<std::int32_t> contents,
                          const void* owner, std::function<void()> written) {
  Table& table = tables_[static_cast<const char*>(address)];
  table.watchers[owner] = std::move(written);
  table.tokens = tokens;
  table.contents = std::move(contents);
  table.summary = summarise(table.contents, tokens);
}

void SegmentTables::unwatch(const void* address, const void* owner) noexcept {
  const auto table = tables_.find(static_cast<const char*>(address));
  if (table == tables_.end()) return;
  table->second.watchers.erase(owner);
  if (table->second.watchers.empty()) tables_.erase(table);
}

void SegmentTables::written(const void* device, const void* host, std::size_t bytes) {
  const char* begin = static_cast<const char*>(device);
  for (auto& [address, table] : tables_) {
    const std::size_t size = table.contents.size() * sizeof(std::int32_t);
    if (begin >= address + size || address >= begin + bytes) continue;
    const char *first = std::max(begin, address), *last = std::min(begin + bytes, address + size);
    char* kept = reinterpret_cast<char*>(table.contents.data()) + (first - address);
    // What is not known is not a boundary: -1 everywhere.
    if (host)
      std::memcpy(kept, static_cast<const char*>(host) + (first - begin),
                  static_cast<std::size_t>(last - first));
    else
      std::memset(kept, 0xFF, static_cast<std::size_t>(last - first));
    table.summary = summarise(table.contents, table.tokens);
    for (const auto& [owner, told] : table.watchers) {
      if (told) told();
    }
  }
}

std::optional<SegmentSummary> SegmentTables::summary(const void* address) const {
  const auto table = tables_.find(static_cast<const char*>(address));
  return table == tables_.end() ? std::nullopt : table->second.summary;
}

}  // namespace mulligan::cuda
