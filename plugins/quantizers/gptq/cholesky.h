// Cholesky factor of a symmetric positive definite matrix, in place, blocked and in parallel.
#pragma once

#include <cstdint>
#include <functional>

namespace mulligan {

// Runs body(begin, end) over pieces of [0, count).
using ParallelFor =
    std::function<void(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body)>;

// Replaces the lower triangle of `a` [n, n] by L with L L^T = a; what stands above the diagonal is neither
// read nor kept. Right-looking, panels of 64 columns; the result does not depend on how `parallel` cuts.
// Throws std::runtime_error with a sentence when a pivot is not positive.
void cholesky(double* a, std::int64_t n, const ParallelFor& parallel);

}  // namespace mulligan
