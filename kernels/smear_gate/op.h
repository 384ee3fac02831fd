// The op of the smear gate.
#pragma once

#include <cstdint>

#include "framework/graph/tape.h"

namespace mulligan::ops {

struct Smear {
  std::int64_t row_length = 0;      // token t begins a row where t mod row_length is 0
  std::int64_t document_start = 1;  // token that begins a document; -1: none does
};

// y_t = x_t + lambda sigmoid(<weight, x_t[:W]>) x_{t-1}, or x_t where token t begins a row or a document. x
// [T, D]; tokens [T] i32; weight [1, W] of x's dtype, W <= D; lambda [1] f32. x_{t-1} is not mixed.
Value smear(Tape& tape, Value x, Value tokens, Value weight, Value lambda, const Smear& options);

}  // namespace mulligan::ops
