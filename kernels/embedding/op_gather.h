// Some rows of a tensor.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// y[i] = x[rows[i]]: x [T, ...], rows [N] i32 within 0..T-1, y [N, ...]. Rows may repeat; their gradients add up.
Value gather_rows(Tape& tape, Value x, Value rows);

}  // namespace mulligan::ops
