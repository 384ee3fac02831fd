// Soft capping of logits.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// cap * tanh(z / cap), elementwise.
Value softcap(Tape& tape, Value z, double cap);

}  // namespace mulligan::ops
