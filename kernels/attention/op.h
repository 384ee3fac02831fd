// Softmax attention inside segments, with grouped queries.
#pragma once

#include <cstdint>

#include "framework/graph/tape.h"

namespace mulligan::ops {

// Causal. q [T, H, h]; k, v [T, K, h] with K dividing H; cu_seqlens [N+1] i32: segment boundaries (docs/kernels.md).
// `scale` multiplies the scores q k^T; 0: 1/sqrt(h). The result has the type of q. Needs memory linear in T.
Value attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens, double scale = 0);
// The same of every query over all keys of its segment, also later ones.
Value bidirectional_attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens, double scale = 0);

// Causal attention whose softmax subtracts more than a repeated maximum (arXiv 2510.04212), and what it rounds: docs/kernels.md,
// attention_stable_fwd; docs/numerics/attention_bias.md for why. Exactly computed it is attention(), as is its backward pass.
struct StableAttention {
  double beta = 2, tolerance = 1e-3, cap = 20;
  std::int64_t min_repeats = 2;  // 0: no maximum is replaced
  bool round_normalizer = false, round_sums = false;
  double scale = 0;  // as in attention()
};

// Arguments and result as for attention(); f32 and bf16.
Value stable_attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens, const StableAttention& how);

}  // namespace mulligan::ops
