// The MLP activation.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// (u > 0 ? u : slope*u)^2, elementwise.
Value leaky_relu_squared(Tape& tape, Value u, double slope);

}  // namespace mulligan::ops
