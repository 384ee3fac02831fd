// A bias that every row gets.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// x + bias: x [T, ...] of any rank whose last axes together have as many elements as bias [d] f32; the type
// of x.
Value row_bias(Tape& tape, Value x, Value bias);

}  // namespace mulligan::ops
