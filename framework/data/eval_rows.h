// Which tokens an evaluation scores, in which rows: packed rows and sliding windows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/config/eval_config.h"
#include "framework/data/segments.h"

namespace mulligan {

// Input positions [start, start + length) of a token stream; the targets are the tokens one further on.
// Scored are the positions [score_begin, length), relative to start.
struct EvalSpan {
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int64_t score_begin = 0;
  bool operator==(const EvalSpan&) const = default;
};

// The rows or windows of one rank, in order. Throws config_error for sizes or ranks out of range.
// EvalMode::rows: of eval.packed_sequences sequences; all positions of a row are scored. Together the ranks score each of
// the token_count - 1 targets once; the last row may be short. With eval.drop_remainder the stream is cut to whole
// sequences and each rank drops its last partial row, which is the public script's figure. With eval.shares > 0 the
// targets are cut into so many equal shares with rows of their own, which the ranks deal out among them
// (docs/evaluation.md; fixture `eval_tail`). Rows depend on the world size with drop_remainder alone.
// EvalMode::sliding: windows start at the multiples of the stride while start + (sequence_length - stride) is a scorable
// position. The first scores all it holds, the others from position sequence_length - stride on. A stream no longer than
// the overlap gets one window, so that every token is scored once.
std::vector<EvalSpan> eval_rows(std::int64_t token_count, const EvalConfig& eval, int world_size = 1,
                                int rank = 0);

// Copies a span into a row of `row_tokens` positions (>= span.length). Segments start at BOS and, with
// max_segment_tokens > 0, are cut at that length from their start; the unused rest of the row is filled with
// BOS tokens and targets, one segment each (tokens 0 after the last segment for kNoDocuments), and is not scored.
void fill_eval_row(std::span<const std::uint16_t> tokens, const EvalSpan& span, std::int64_t row_tokens,
                   int bos_id, std::int64_t max_segment_tokens, Batch& batch);

}  // namespace mulligan
