// Factors of symmetric matrices.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace mulligan {

// Runs body(begin, end) over pieces of [0, count).
using ParallelFor =
    std::function<void(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body)>;

// Replaces the lower triangle of `a` [n, n] by L with L L^T = a; what stands above the diagonal is neither
// read nor kept. Right-looking, panels of 64 columns; the result does not depend on how `parallel` cuts.
// Throws std::runtime_error with a sentence when a pivot is not positive.
void cholesky(double* a, std::int64_t n, const ParallelFor& parallel);

// Of a positive semidefinite matrix [n, n], row-major, which is destroyed: eigenvalues from the largest, and
// in row k of `vectors` [n, n] the unit eigenvector of values[k]; signs are arbitrary. One-sided Jacobi
// (Hestenes, 1958): rows are turned in pairs until all are orthogonal. Relative errors near the machine's
// epsilon; time n^3 times some ten sweeps.
struct SymmetricEigen {
  std::vector<double> values, vectors;
};
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace mulligan
