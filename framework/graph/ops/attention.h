// Softmax attention inside segments, with grouped queries.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// Causal. q [T, H, h]; k, v [T, K, h] with K dividing H; cu_seqlens [N+1] i32: segment boundaries (docs/kernels.md).
// Softmax scale 1/sqrt(h). The result has the type of q. Needs memory linear in T.
Value attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens);
// The same of every query over all keys of its segment, also later ones.
Value bidirectional_attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens);

}  // namespace mulligan::ops
