// Matrices one below the other, so that one matmul replaces the matmuls with each of them.
#pragma once

#include <span>

#include "framework/graph/tape.h"

namespace mulligan::ops {

// One to four matrices [r_i, w_i] of one dtype, parameters (watched leaves, or nothing that is trained), in a
// matrix [rows, width] with rows >= the sum of r_i and width >= w_i; what is left is zero. Its gradient is
// kept in f32 whatever its dtype is, since it is added to the parameters' f32 gradients. Throws
// std::logic_error for another number of them; in the backward pass also for a computed one.
Value concat_rows(Tape& tape, std::span<const Value> matrices, std::int64_t rows, std::int64_t width);

}  // namespace mulligan::ops
