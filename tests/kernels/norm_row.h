// The norm of a row, for formulas of kernels that normalise.
#pragma once

#include <cmath>

#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test {

inline constexpr double kEps = 1.1920928955078125e-7;  // 2^-23

// scale * norm(x[row]) -> y[row]
template <typename S>
void norm_row(Values<S>& x, Values<S>& y, std::int64_t row, double scale, double eps) {
  const std::int64_t width = x.dim(1);
  S squares = 0.0;
  for (std::int64_t j = 0; j < width; ++j) squares += x(row, j) * x(row, j);
  using std::sqrt;
  const S root = sqrt(squares / S(static_cast<double>(width)) + S(eps));
  for (std::int64_t j = 0; j < width; ++j) y(row, j) = S(scale) * x(row, j) / root;
}

}  // namespace mulligan::kernel_test
