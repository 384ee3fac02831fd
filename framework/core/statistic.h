// Mean and standard deviation of a sample.
#pragma once

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
Statistic statistic_of(std::span<const double> values);

}  // namespace mulligan
