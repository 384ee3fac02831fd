// Root-mean-square normalisation with a weight per column.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// weight * x / sqrt(mean(x^2) + eps) over the last axis; x [T, d], weight [d] f32; the type of x.
Value weighted_rms_norm(Tape& tape, Value x, Value weight, double eps);

}  // namespace mulligan::ops
