// The forward pass of the family qwen2. Callers use mulligan::build_forward, which chooses it.
#pragma once

#include "framework/model/forward.h"

namespace mulligan::qwen2 {

// With T tokens, d width, H query and K key/value heads of h elements (docs/qwen2.md has the source):
//
//   x = embedding[tokens]
//   each layer:  n = norm(x) w1;  q, k, v = n Wq^T + bq, n Wk^T + bk, n Wv^T + bv;  q, k rotated by halves
//                x += attention(q, k, v) Wo^T;  m = norm(x) w2;  x += (silu(m Wgate^T) * (m Wup^T)) Wdown^T
//   logits = norm(x) w Whead^T, Whead the embedding where it is tied
//
// Layers run once, in order, so execution slots are layers. The tap mlp_up is at Wup's matmul.
// `inputs.rope_sin` must be that of rope_tables(model, ...).
Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options);

}  // namespace mulligan::qwen2
