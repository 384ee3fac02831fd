// Inner products, and factors of symmetric matrices.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace mulligan {

// The inner product in a fixed order of additions: several sums side by side, so that the CPU need not wait for each.
inline double dot(const double* a, const double* b, std::int64_t n) {
  constexpr int lanes = 8;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

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
