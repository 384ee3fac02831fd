// Mean and standard deviation of a sample.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

namespace mulligan {

struct Statistic {
  double mean = 0;
  std::optional<double> deviation;  // standard deviation of the sample (n - 1); absent for n = 1
  std::size_t n = 0;
};

// Of one value or more.
inline Statistic statistic_of(std::span<const double> values) {
  Statistic statistic;
  statistic.n = values.size();
  const auto n = static_cast<double>(values.size());
  for (const double value : values) statistic.mean += value;
  statistic.mean /= n;
  if (values.size() == 1) return statistic;
  double squares = 0;
  for (const double value : values) squares += (value - statistic.mean) * (value - statistic.mean);
  statistic.deviation = std::sqrt(squares / (n - 1));
  return statistic;
}

}  // namespace mulligan
