#include "plugins/quantizers/gptq/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace mulligan {
namespace {

constexpr std::int64_t panel_columns = 64;
constexpr std::int64_t tile_rows = 4;
constexpr std::int64_t tile_columns = 16;

// Factors the diagonal block [begin, end).
void factor_block(double* a, std::int64_t n, std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) {
    for (std::int64_t j = begin; j < k; ++j) {
      for (std::int64_t i = k; i < end; ++i) a[i * n + k] -= a[i * n + j] * a[k * n + j];
    }
    const double pivot = a[k * n + k];
    if (!(pivot > 0) || !std::isfinite(pivot)) {
      throw std::runtime_error(
          "the second moments of the layer's input are not positive definite; raise damping, or calibrate "
          "on more tokens");
    }
    const double root = std::sqrt(pivot);
    a[k * n + k] = root;
    for (std::int64_t i = k + 1; i < end; ++i) a[i * n + k] /= root;
  }
}

// Row i of the panel: solves x L_kk^T = a[i, begin:end).
void solve_row(double* a, std::int64_t n, std::int64_t i, std::int64_t begin, std::int64_t end) {
  double* row = a + i * n;
  for (std::int64_t k = begin; k < end; ++k) {
    double value = row[k];
    for (std::int64_t j = begin; j < k; ++j) value -= row[j] * a[k * n + j];
    row[k] = value / a[k * n + k];
  }
}

// a[i, j] -= sum_p panel[i, p] panel[j, p] for a tile of full size; `across` holds the panel transposed.
void update_tile(double* a, std::int64_t n, std::int64_t i, std::int64_t j, std::int64_t panel,
                 std::int64_t width, const double* across, std::int64_t across_stride) {
  double sums[tile_rows][tile_columns] = {};
  for (std::int64_t p = 0; p < width; ++p) {
    const double* right = across + p * across_stride;
    for (std::int64_t r = 0; r < tile_rows; ++r) {
      const double left = a[(i + r) * n + panel + p];
      for (std::int64_t c = 0; c < tile_columns; ++c) sums[r][c] += left * right[c];
    }
  }
  for (std::int64_t r = 0; r < tile_rows; ++r) {
    for (std::int64_t c = 0; c < tile_columns; ++c) a[(i + r) * n + j + c] -= sums[r][c];
  }
}

}  // namespace

void cholesky(double* a, std::int64_t n, const ParallelFor& parallel) {
  std::vector<double> across;  // [width, rest]: the panel below the diagonal block, transposed
  for (std::int64_t begin = 0; begin < n; begin += panel_columns) {
    const std::int64_t end = std::min(n, begin + panel_columns);
    const std::int64_t width = end - begin;
    factor_block(a, n, begin, end);
    const std::int64_t rest = n - end;
    if (rest == 0) break;
    // Rounded up to whole tiles; the padding stays zero.
    const std::int64_t stride = (rest + tile_columns - 1) / tile_columns * tile_columns;
    across.assign(static_cast<std::size_t>(width * stride), 0.0);
    parallel(rest, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        solve_row(a, n, end + i, begin, end);
        for (std::int64_t p = 0; p < width; ++p) across[p * stride + i] = a[(end + i) * n + begin + p];
      }
    });
    const std::int64_t strips = (rest + tile_rows - 1) / tile_rows;
    parallel(strips, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t strip = first; strip < last; ++strip) {
        const std::int64_t row = strip * tile_rows;
        const std::int64_t rows = std::min(tile_rows, rest - row);
        // Tiles that touch the lower triangle; elements above the diagonal are scratch.
        for (std::int64_t column = 0; column < row + rows; column += tile_columns) {
          const std::int64_t columns = std::min(tile_columns, rest - column);
          if (rows == tile_rows && columns == tile_columns) {
            update_tile(a, n, end + row, end + column, begin, width, across.data() + column, stride);
            continue;
          }
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < columns; ++c) {
              double sum = 0;
              for (std::int64_t p = 0; p < width; ++p) {
                sum += a[(end + row + r) * n + begin + p] * across[p * stride + column + c];
              }
              a[(end + row + r) * n + end + column + c] -= sum;
            }
          }
        }
      }
    });
  }
}

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
