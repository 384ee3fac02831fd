// A residual addition with a learned scale, and the normalisation that follows it.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

struct ScaledSum {
  Value sum;   // x + scale_vector * a
  Value norm;  // norm_scale * rms_norm(sum); absent when not asked for
};

// x, a [T, d]; scale_vector [d] f32, absent: 1.
ScaledSum scaled_add_norm(Tape& tape, Value x, Value a, Value scale_vector, double norm_scale, double eps,
                          bool want_norm);
// The same into `out`, whose norm may be absent.
ScaledSum scaled_add_norm(Tape& tape, Value x, Value a, Value scale_vector, double norm_scale, double eps,
                          const ScaledSum& out);

}  // namespace mulligan::ops
