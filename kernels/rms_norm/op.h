// Root-mean-square normalisation without a weight.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// scale * x / sqrt(mean(x^2) + eps) over the last axis; the type of x.
Value rms_norm(Tape& tape, Value x, double scale, double eps);

}  // namespace mulligan::ops
