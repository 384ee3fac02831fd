// The op of the asymmetric softcap.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// c tanh(z / c), element by element, c = positive where z > 0, else negative. Both [1] f32, above 0.
Value capped(Tape& tape, Value z, Value positive, Value negative);

}  // namespace mulligan::ops
