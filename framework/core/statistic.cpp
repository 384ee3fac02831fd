#include "framework/core/statistic.h"

#include <cmath>

namespace mulligan {

Statistic statistic_of(std::span<const double> values) {
  Statistic statistic;
  statistic.n = values.size();
  for (const double value : values) statistic.mean += value;
  statistic.mean /= static_cast<double>(values.size());
  if (values.size() == 1) return statistic;
  double squares = 0;
  for (const double value : values) squares += (value - statistic.mean) * (value - statistic.mean);
  statistic.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return statistic;
}

}  // namespace mulligan
