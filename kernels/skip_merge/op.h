// Encoder-decoder skip connections.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// With a gate: w*s + sigmoid(g)*(x - w*s); without: x + w*s. x, s [T, d]; weight, gate [d] f32.
Value skip_merge(Tape& tape, Value x, Value s, Value weight, Value gate);

}  // namespace mulligan::ops
