// The MLP's activation between its two products, in kernels that compute it along with them: forward with the
// product that makes its input, backward with the one that makes its output's gradient.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// Whether `tape`'s graph may use them.
bool can_fuse_activation(const Tape& tape);

struct Activated {
  Value u;  // x W^T; absent where it was not wanted
  Value y;  // (u > 0 ? u : slope u)^2
};
// x: [T, in]; weight [out, in] of the same dtype; u and y have `result` as their type, [T, out]. u is made
// where `want_u` says so, and wherever gradients are.
Activated linear_leaky_relu_squared(Tape& tape, Value x, Value weight, const TensorType& result, double slope,
                                    bool want_u);

// linear(), of an activation: y W^T as `result`. Its rule passes the gradient on to activated.u at once, so
// that there is none of y; y must have no other reader that needs one.
Value activated_linear(Tape& tape, const Activated& activated, double slope, Value weight,
                       const TensorType& result);

}  // namespace mulligan::ops
