// Eigenvectors of a symmetric matrix.
#pragma once

#include <cstdint>
#include <vector>

namespace mulligan {

// Of a positive semidefinite matrix [n, n], row-major, destroyed: eigenvalues from the largest, in row
// k of `vectors` [n, n] the unit eigenvector of values[k], any sign. One-sided Jacobi (Hestenes, 1958): rows
// are turned in pairs until all are orthogonal. Errors near the machine's epsilon; time n^3 times ten sweeps.
struct SymmetricEigen {
  std::vector<double> values, vectors;
};
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace mulligan
