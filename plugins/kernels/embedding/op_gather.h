// Some rows of a matrix.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// y[i] = x[rows[i]]: x [T, d], rows [N] i32 within 0..T-1, y [N, d]. Rows may repeat; their gradients add up.
Value gather_rows(Tape& tape, Value x, Value rows);

}  // namespace mulligan::ops
