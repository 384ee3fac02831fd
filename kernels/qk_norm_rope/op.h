// Queries and keys: per-head normalisation, rotary embedding, gain.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

struct QkNormRope {
  bool norm = true;             // RMS-normalise each head
  double eps = 0;               // of that norm
  std::int64_t rope_dims = 0;   // even; the first dimensions of each head, as halves (j, j + rope_dims/2)
  std::int64_t row_length = 0;  // the position of token t is t mod row_length
};

// As the kernels of rotated heads take them.
std::vector<Attribute> qk_norm_rope_attributes(const QkNormRope& options);

// x [T, heads, h]; cos, sin [positions, rope_dims/2] f32; gain [heads] f32 or absent, applied last.
Value qk_norm_rope(Tape& tape, Value x, Value cos, Value sin, Value gain, const QkNormRope& options);

}  // namespace mulligan::ops
