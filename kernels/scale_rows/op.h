// A matrix whose rows are scaled: what a learned scale per output of a linear layer makes of its weight, once
// for all that multiply by it.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// weight [r, c], scale [r] f32 -> scale[i] * weight[i], in the weight's dtype. The gradient of the result is
// kept in f32, as are those of weight and scale, which must be parameters (Tape::watch).
Value scale_rows(Tape& tape, Value weight, Value scale);

}  // namespace mulligan::ops
