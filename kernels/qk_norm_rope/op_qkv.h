// What attention reads, from the rows of one matmul: queries, keys, values and head gates.
#pragma once

#include "kernels/qk_norm_rope/op.h"

namespace mulligan::ops {

// A packed row: `heads` query heads, `kv_heads` key heads and as many value heads, `head_width` elements
// each; with `gated` a gate per query head; padding.
struct PackedHeads {
  std::int64_t heads = 0, kv_heads = 0, head_width = 0;
  bool gated = false;

  std::int64_t width() const { return (heads + 2 * kv_heads) * head_width + (gated ? heads : 0); }
};

struct AttentionInputs {
  Value q;        // [T, H, h], rotated
  Value k;        // [T, K, h], rotated
  Value v;        // [T, K, h]
  Value v_again;  // v for a second reader, whose gradient is kept apart: neither reader adds to the other's
  Value gate;     // [T, H], before the sigmoid; absent without gates
};

// packed [T, W], W >= width(); cos, sin and gain as for qk_norm_rope, gain of queries alone. The objective
// must depend on q, k and v (std::logic_error else).
AttentionInputs qkv_split_norm_rope(Tape& tape, Value packed, Value cos, Value sin, Value gain,
                                    const PackedHeads& heads, const QkNormRope& options);

}  // namespace mulligan::ops
