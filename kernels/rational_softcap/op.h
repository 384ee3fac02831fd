// Soft capping of logits by a rational function.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// cap * z / sqrt(z^2 + cap^2), elementwise; f32 whatever the dtype of z.
Value rational_softcap(Tape& tape, Value z, double cap);

}  // namespace mulligan::ops
