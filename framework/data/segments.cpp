#include "framework/data/segments.h"

#include <algorithm>
#include <stdexcept>

namespace mulligan {
namespace {

std::size_t padded(std::size_t boundaries) {
  return (boundaries + kSegmentBucket - 1) / kSegmentBucket * kSegmentBucket;
}

// `each(start)` calls start(place) for each document, in ascending order.
template <typename Each>
void fill_segments(std::int64_t row_tokens, std::int64_t max_segment_tokens, Batch& batch, Each&& each) {
  const auto row = static_cast<std::int32_t>(row_tokens);
  const auto most = max_segment_tokens > 0 ? static_cast<std::int32_t>(max_segment_tokens) : row;
  batch.cu_seqlens.assign(1, 0);
  batch.longest_segment = 0;
  const auto start = [&](std::int32_t place) {
    while (batch.cu_seqlens.back() < place) {
      const std::int32_t tokens = std::min(place - batch.cu_seqlens.back(), most);
      batch.longest_segment = std::max(batch.longest_segment, tokens);
      batch.cu_seqlens.push_back(batch.cu_seqlens.back() + tokens);
    }
  };
  each(start);
  start(row);
  batch.segment_count = static_cast<std::int32_t>(batch.cu_seqlens.size()) - 1;
  batch.cu_seqlens.resize(padded(batch.cu_seqlens.size()), row);
}

}  // namespace

std::int64_t Batch::target_count() const {
  return std::ranges::count_if(targets, [](std::int32_t target) { return target >= 0; });
}

void Batch::reserve(std::int64_t row_tokens) {
  const auto count = static_cast<std::size_t>(row_tokens);
  tokens.resize(count);
  targets.resize(count);
  cu_seqlens.reserve(padded(count + 1));
}

void build_segments(std::span<const std::int32_t> starts, std::int64_t row_tokens,
                    std::int64_t max_segment_tokens, Batch& batch) {
  fill_segments(row_tokens, max_segment_tokens, batch, [&](auto& start) {
    for (const std::int32_t place : starts) start(place);
  });
}

void build_segments_at_bos(int bos_id, std::int64_t max_segment_tokens, Batch& batch,
                           std::int64_t piece_tokens) {
  batch.piece_tokens = piece_tokens;
  fill_segments(std::ssize(batch.tokens), max_segment_tokens, batch, [&](auto& start) {
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const auto place = static_cast<std::int32_t>(i);
      if (batch.tokens[i] == bos_id || (piece_tokens > 0 && place % piece_tokens == 0)) start(place);
    }
  });
}

RowParts::RowParts(const Shape& shape) : shape_(shape) {
  if (shape_.parts == 1) return;
  parts_.resize(static_cast<std::size_t>(shape_.parts));
  for (Batch& part : parts_) part.reserve(shape_.part_tokens);
}

std::span<const Batch> RowParts::of(const Batch& row) {
  if (parts_.empty()) return {&row, 1};
  std::size_t first = 0, last = 0;  // boundaries of the row
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    // To the last boundary that does not lie beyond its share.
    const std::int64_t share = shape_.row_tokens * static_cast<std::int64_t>(i + 1) / shape_.parts;
    while (row.cu_seqlens[last] < shape_.row_tokens && row.cu_seqlens[last + 1] <= share) ++last;
    fill(parts_[i], row, first, last);
    first = last;
  }
  return parts_;
}

// The segments from boundary `first` to boundary `last`.
void RowParts::fill(Batch& part, const Batch& row, std::size_t first, std::size_t last) const {
  part.tokens.clear();
  part.targets.clear();
  part.cu_seqlens.assign(1, 0);
  if (first == last) return;
  const std::int32_t begin = row.cu_seqlens[first], end = row.cu_seqlens[last];
  if (begin > 0 && shape_.sees_before) {
    part.tokens.push_back(row.tokens[static_cast<std::size_t>(begin - 1)]);
    part.targets.push_back(-1);
    part.cu_seqlens.push_back(1);
  }
  const auto before = static_cast<std::int32_t>(part.tokens.size());
  if (before + end - begin > shape_.part_tokens) throw std::logic_error("RowParts: a segment is too long");
  part.tokens.insert(part.tokens.end(), row.tokens.begin() + begin, row.tokens.begin() + end);
  part.targets.insert(part.targets.end(), row.targets.begin() + begin, row.targets.begin() + end);
  for (std::size_t i = first + 1; i <= last; ++i)
    part.cu_seqlens.push_back(row.cu_seqlens[i] - begin + before);
  part.tokens.resize(static_cast<std::size_t>(shape_.part_tokens), 0);
  part.targets.resize(static_cast<std::size_t>(shape_.part_tokens), -1);
  while (part.cu_seqlens.back() < shape_.part_tokens) {
    const std::int64_t filled = part.cu_seqlens.back() + shape_.longest_segment;
    part.cu_seqlens.push_back(static_cast<std::int32_t>(std::min(filled, shape_.part_tokens)));
  }
  part.segment_count = static_cast<std::int32_t>(part.cu_seqlens.size()) - 1;
}

void show_possible_segments(std::int64_t row_tokens, std::int64_t longest_segment,
                            const std::function<void(std::span<const std::int32_t>)>& show) {
  longest_segment = std::min(longest_segment, row_tokens);
  std::vector<std::int32_t> boundaries;
  for (std::int64_t longest = longest_segment; longest > 0; longest /= 2) {
    std::int64_t count = (row_tokens + longest - 1) / longest;
    while (true) {
      boundaries.assign(1, 0);
      // The longest first; the others share what is left, at least one token each.
      const std::int64_t first = std::min(longest, row_tokens - (count - 1)), rest = row_tokens - first;
      for (std::int64_t other = 0; other < count; ++other) {
        const std::int64_t end = count == 1 ? row_tokens : first + rest * other / (count - 1);
        boundaries.push_back(static_cast<std::int32_t>(end));
      }
      show(boundaries);
      if (count == row_tokens) break;
      count = std::min(row_tokens, count + std::max<std::int64_t>(1, count / 8));
    }
  }
}

}  // namespace mulligan
