// The activation of SwiGLU.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// silu(g) * u = g * sigmoid(g) * u, elementwise; g and u of one type, which the result has.
Value silu_gate(Tape& tape, Value g, Value u);

}  // namespace mulligan::ops
