// Linear layers: y = x W^T.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// x: [T, in] or any shape with T*in elements; weight: [out, in]. The weight has the dtype of x, or 16 bits if x and the
// result are f32. In that case the matmuls widen it as they read it (LayerCast), and its gradient is that of the widened
// weight. The result has type `result` (T*out elements, for example [T, heads, head width]). A bias [out] f32 is rounded to
// the result's dtype and added before the result is rounded.
Value linear(Tape& tape, Value x, Value weight, const TensorType& result, Value bias = {});

// The same into y.
void linear_into(Tape& tape, Value x, Value weight, Value y, Value bias = {});

// What a linear layer multiplies: x [T, in] and a weight [out, in].
struct LinearOperands {
  Value x, weight;
};

// y = x W^T (+ y where `beta` is 1), and no record of it: a layer that multiplies others than it differentiates.
void linear_matmul(Graph& graph, const LinearOperands& read, Value y, double beta = 0);

// The gradients of y = x W^T with y's gradient dy and the operands that were read, into those of `of`.
void linear_gradients(Backward& b, Value dy, const LinearOperands& read, const LinearOperands& of);

}  // namespace mulligan::ops
