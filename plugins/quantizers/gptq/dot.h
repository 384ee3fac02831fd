// Inner products in a fixed order of additions.
#pragma once

#include <cstdint>

namespace mulligan {

// Several sums side by side, so that the CPU need not wait for each.
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

}  // namespace mulligan
