// Linear layers: y = x W^T.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// x: [T, in] or any shape with T*in elements; weight [out, in] of the same dtype, or of 16 bits where x and
// the result are f32: then it is widened as the products read it (LayerCast), and its gradient is that of the
// widened weight. The result has `result` as
// its type (T*out elements, for example [T, heads, head width]). With bias [out] f32 it is added before the result is
// rounded, itself rounded to the result's dtype first.
Value linear(Tape& tape, Value x, Value weight, const TensorType& result, Value bias = {});

// The same into y.
void linear_into(Tape& tape, Value x, Value weight, Value y, Value bias = {});

}  // namespace mulligan::ops
