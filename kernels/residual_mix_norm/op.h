// The start of a block: mix the residual stream with the embedding, then normalise.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

struct MixedResidual {
  Value sum;   // mix[0]*x + mix[1]*x0; absent when not asked for
  Value norm;  // scale * rms_norm(sum)
};

// x, x0 [T, d]; mix [2, d] f32. `want_sum`: whether the caller needs the un-normalised sum.
MixedResidual residual_mix_norm(Tape& tape, Value x, Value x0, Value mix, double scale, double eps,
                                bool want_sum);

}  // namespace mulligan::ops
