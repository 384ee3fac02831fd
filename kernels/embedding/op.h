// Token embedding.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// x[t] = table[ids[t]]. ids [T] i32; table [V, d]; result [T, d] of the table's dtype.
Value embedding(Tape& tape, Value ids, Value table);

}  // namespace mulligan::ops
