#include "plugins/quantizers/gptq/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plugins/quantizers/gptq/dot.h"

namespace mulligan {
namespace {

constexpr int most_sweeps = 60;

void turn(double* a, double* b, std::int64_t n, double cosine, double sine) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    a[i] = cosine * x - sine * y;
    b[i] = sine * x + cosine * y;
  }
}

}  // namespace

SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int64_t n) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> vectors(size * size);
  for (std::size_t i = 0; i < size; ++i) vectors[i * size + i] = 1;
  const double largest = std::sqrt(dot(matrix.data(), matrix.data(), n * n));
  bool turned = true;
  for (int sweep = 0; turned && sweep < most_sweeps; ++sweep) {
    turned = false;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        double *a = matrix.data() + p * n, *b = matrix.data() + q * n;
        const double aa = dot(a, a, n), bb = dot(b, b, n), ab = dot(a, b, n);
        if (std::abs(ab) <= 1e-15 * std::sqrt(aa * bb) || std::abs(ab) <= 1e-30 * largest * largest) continue;
        turned = true;
        const double zeta = (bb - aa) / (2 * ab);
        const double tangent = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cosine = 1 / std::sqrt(1 + tangent * tangent);
        turn(a, b, n, cosine, cosine * tangent);
        turn(vectors.data() + p * n, vectors.data() + q * n, n, cosine, cosine * tangent);
      }
    }
  }
  // The rows are now eigenvalue times eigenvector.
  std::vector<double> values(size);
  for (std::size_t k = 0; k < size; ++k) {
    const double* row = matrix.data() + k * size;
    values[k] = std::sqrt(dot(row, row, n));
  }
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  SymmetricEigen sorted;
  for (const std::size_t k : order) {
    sorted.values.push_back(values[k]);
    const auto row = vectors.begin() + static_cast<std::ptrdiff_t>(k * size);
    sorted.vectors.insert(sorted.vectors.end(), row, row + n);
  }
  return sorted;
}

}  // namespace mulligan
