// How far numbers lie from a fixture's.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace mulligan {

// Infinite where sizes differ or a number is none.
inline double largest_difference(const std::vector<float>& ours, const std::vector<double>& theirs) {
  if (ours.size() != theirs.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    largest = std::max(largest, std::isnan(ours[i]) ? INFINITY : std::abs(ours[i] - theirs[i]));
  return largest;
}

inline double largest_magnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Root mean square of the differences over that of `theirs`; infinite as above.
inline double relative_rms(const std::vector<float>& ours, const std::vector<double>& theirs) {
  if (ours.size() != theirs.size()) return INFINITY;
  double differences = 0, squares = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = ours[i] - theirs[i];
    if (std::isnan(difference)) return INFINITY;
    differences += difference * difference;
    squares += theirs[i] * theirs[i];
  }
  return std::sqrt(differences / squares);
}

}  // namespace mulligan
