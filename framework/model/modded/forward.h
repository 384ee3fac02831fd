// The forward pass of the Modded-NanoGPT optimisation benchmark (docs/arena.md).
#pragma once

#include "framework/model/forward.h"

namespace mulligan::modded {

// With n(x) = x / sqrt(mean(x^2) + eps) and every linear layer with a bias:
//   x = n(embed[tokens]) norm1;  per block  x += attn(n(x) norm1_i),  x += mlp(n(x) norm2_i);
//   logits = proj(n(x) norm2)
// attn: q, k, v; n() of q and k per head, rotated; causal attention inside segments with
// model.attention_scale; proj. mlp: proj(max(fc, 0)^2). Taps, head_rows, hidden and point as in
// mulligan::build_forward; layers run once each.
Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options);

}  // namespace mulligan::modded
