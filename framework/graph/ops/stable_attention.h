// Causal attention whose softmax subtracts more than a repeated maximum (arXiv 2510.04212), and which says
// what it rounds. Exactly computed it is attention.h; the backward pass is that of attention.h.
#pragma once

#include <cstdint>

#include "framework/graph/tape.h"

namespace mulligan::ops {

// docs/kernels.md, attention_stable_fwd; docs/numerics/attention_bias.md for why.
struct StableAttention {
  double beta = 2, tolerance = 1e-3, cap = 20;
  std::int64_t min_repeats = 2;  // 0: no maximum is replaced
  bool round_normalizer = false, round_sums = false;
};

// Arguments and result as for attention(); f32 and bf16.
Value stable_attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens, const StableAttention& how);

}  // namespace mulligan::ops
