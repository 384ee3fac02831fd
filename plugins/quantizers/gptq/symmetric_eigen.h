// Eigenvectors of a symmetric matrix.
#pragma once

#include <cstdint>
#include <vector>

namespace mulligan {

// Of a positive semidefinite matrix [n, n], row-major, which is destroyed: eigenvalues from the largest, and
// in row k of `vectors` [n, n] the unit eigenvector of values[k]; signs are arbitrary. One-sided Jacobi
// (Hestenes, 1958): rows are turned in pairs until all are orthogonal. Relative errors near the machine's
// epsilon; time n^3 times some ten sweeps.
struct SymmetricEigen {
  std::vector<double> values, vectors;
};
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace mulligan
