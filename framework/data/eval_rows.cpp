#include "framework/data/eval_rows.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/data/documents.h"

namespace mulligan {
namespace {

// The half-open share of `count` items that belongs to a rank.
struct Share {
  std::int64_t begin;
  std::int64_t end;
};
Share share_of(std::int64_t count, int world_size, int rank) {
  return {count * rank / world_size, count * (rank + 1) / world_size};
}

std::vector<EvalSpan> packed_rows(std::int64_t token_count, const EvalConfig& eval, int world_size,
                                  int rank) {
  const std::int64_t sequence = eval.sequence_length;
  config_error_if(sequence < 1 || eval.packed_sequences < 1,
                  "evaluation rows of {} sequences of {} tokens are not possible; both must be at least 1",
                  eval.packed_sequences, sequence);
  const std::int64_t row_tokens = sequence * eval.packed_sequences;
  std::vector<EvalSpan> rows;
  if (eval.drop_remainder) {
    const std::int64_t whole = std::max<std::int64_t>(whole_rows_length(token_count, sequence), 1);
    const Share sequences = share_of((whole - 1) / sequence, world_size, rank);
    for (std::int64_t first = sequences.begin; first + eval.packed_sequences <= sequences.end;
         first += eval.packed_sequences) {
      rows.push_back({first * sequence, row_tokens, 0});
    }
    return rows;
  }
  const std::int64_t scored = std::max<std::int64_t>(token_count - 1, 0);
  if (eval.shares > 0) {
    const auto shares = static_cast<int>(eval.shares);
    const Share own = share_of(shares, world_size, rank);
    for (std::int64_t part = own.begin; part < own.end; ++part) {
      const Share targets = share_of(scored, shares, static_cast<int>(part));
      for (std::int64_t row = targets.begin; row < targets.end; row += row_tokens)
        rows.push_back({row, std::min(row_tokens, targets.end - row), 0});
    }
    return rows;
  }
  const Share share = share_of((scored + row_tokens - 1) / row_tokens, world_size, rank);
  for (std::int64_t row = share.begin; row < share.end; ++row) {
    rows.push_back({row * row_tokens, std::min(row_tokens, scored - row * row_tokens), 0});
  }
  return rows;
}

std::vector<EvalSpan> sliding_windows(std::int64_t token_count, const EvalConfig& eval, int world_size,
                                      int rank) {
  const std::int64_t length = eval.sequence_length, stride = eval.stride;
  config_error_if(
      stride < 1 || stride > length,
      "a sliding evaluation with stride {} and windows of {} tokens would miss tokens; the stride must "
      "lie in 1..window",
      stride, length);
  const std::int64_t scored = std::max<std::int64_t>(token_count - 1, 0);
  const std::int64_t overlap = length - stride;
  std::int64_t count = scored > overlap ? (scored - overlap + stride - 1) / stride : 0;
  if (count == 0 && scored > 0) count = 1;
  const Share share = share_of(count, world_size, rank);
  std::vector<EvalSpan> windows;
  for (std::int64_t window = share.begin; window < share.end; ++window) {
    const std::int64_t start = window * stride;
    windows.push_back({start, std::min(length, scored - start), window == 0 ? 0 : overlap});
  }
  return windows;
}

}  // namespace

std::vector<EvalSpan> eval_rows(std::int64_t token_count, const EvalConfig& eval, int world_size, int rank) {
  config_error_if(world_size < 1 || rank < 0 || rank >= world_size, "rank {} of {} is not a valid rank", rank,
                  world_size);
  return (eval.mode == EvalMode::sliding ? sliding_windows : packed_rows)(token_count, eval, world_size,
                                                                          rank);
}

void fill_eval_row(std::span<const std::uint16_t> tokens, const EvalSpan& span, std::int64_t row_tokens,
                   int bos_id, std::int64_t max_segment_tokens, Batch& batch) {
  batch.reserve(row_tokens);
  const auto length = static_cast<std::size_t>(span.length);
  const auto source = tokens.subspan(static_cast<std::size_t>(span.start), length + 1);
  std::copy_n(source.begin(), length, batch.tokens.begin());
  std::copy_n(source.begin() + 1, length, batch.targets.begin());
  const int padding = std::max(bos_id, 0);
  std::fill(batch.tokens.begin() + span.length, batch.tokens.end(), padding);
  std::fill(batch.targets.begin() + span.length, batch.targets.end(), padding);
  build_segments_at_bos(bos_id, max_segment_tokens, batch);
}

}  // namespace mulligan
