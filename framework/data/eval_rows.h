// Which tokens an evaluation scores, in which rows: packed rows and sliding windows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

struct PlainEvalOptions {
  std::int64_t sequence_tokens = 0;  // tokens of one sequence
  std::int64_t row_sequences = 1;    // sequences packed into one row
  int world_size = 1;
  int rank = 0;
  // The public script's figure: the stream is cut to whole sequences and each rank drops its last
  // partial row. Otherwise every token is scored, the last row may be short, and the rows do not depend
  // on the world size.
  bool drop_remainder = false;
  // Not 0: the targets are cut into so many equal shares, with rows of their own, which the ranks deal out
  // among them. The rows then do not depend on the world size either.
  // (docs/evaluation.md; fixture `eval_tail`)
  std::int64_t shares = 0;
};

// The rows of one rank, in order; all positions of a row are scored. Together the ranks score each of the
// token_count - 1 targets once (unless drop_remainder). Throws config_error for sizes or ranks out of range.
std::vector<EvalSpan> plain_eval_rows(std::int64_t token_count, const PlainEvalOptions& options);

// The windows of one rank: they start at the multiples of `stride` while start + (sequence_tokens -
// stride) is a scorable position; the first scores all it holds, the others from position sequence_tokens
// - stride on. A stream no longer than the overlap gets one window, so that every token is scored once.
// Throws as above.
std::vector<EvalSpan> sliding_eval_windows(std::int64_t token_count, std::int64_t sequence_tokens,
                                           std::int64_t stride, int world_size, int rank);

// Copies a span into a row of `row_tokens` positions (>= span.length). Segments start at BOS and, with
// max_segment_tokens > 0, are cut at that length from their start; the unused rest of the row is filled with
// BOS tokens and targets, one segment each (tokens 0 after the last segment for kNoDocuments), and is not scored.
void fill_eval_row(std::span<const std::uint16_t> tokens, const EvalSpan& span, std::int64_t row_tokens,
                   int bos_id, std::int64_t max_segment_tokens, Batch& batch);

}  // namespace mulligan
