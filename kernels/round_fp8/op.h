// A linear layer whose operands have the numbers of 8-bit floats.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// Scales of operands, powers of two: an operand becomes scale E(operand / scale), E the nearest number of its format.
struct Fp8Scales {
  double input = 1, weight = 1;  // E4M3: up to 448 scale
  double gradient = 1;           // E5M2: up to 57,344 scale
};

// y = x W^T as linear() computes it, on operands rounded to FP8: x and W in E4M3 in the forward pass and in the gradients, dy
// in E5M2. The matmuls stay in the compute dtype, which represents FP8's numbers exactly. So the result is that of FP8's
// tensor cores, apart from the order and the width of their sums. The gradients of x and W are those at the
// rounded operands. x, W and the result have one dtype.
Value fp8_linear(Tape& tape, Value x, Value weight, const TensorType& result, const Fp8Scales& scales);

}  // namespace mulligan::ops
