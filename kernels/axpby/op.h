// Weighted sums.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// alpha*a + beta*b, elementwise; the type of a.
Value add(Tape& tape, Value a, Value b, double alpha, double beta);

}  // namespace mulligan::ops
