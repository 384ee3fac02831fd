// Linear layers: y = x W^T.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// x: [T, in] or any shape with T*in elements; weight [out, in] of the same dtype. The result has `result` as
// its type (T*out elements, for example [T, heads, head width]).
Value linear(Tape& tape, Value x, Value weight, const TensorType& result);

}  // namespace mulligan::ops
