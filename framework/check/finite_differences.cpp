#include "framework/check/finite_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/philox.h"

namespace mulligan {

std::string compare_with_differences(const std::string& what, const std::vector<float>& values,
                                     const std::vector<float>& gradient, const ScalarFunction& function) {
  constexpr double step = 0x1p-6;  // exact in f32 beside values of order one
  constexpr double relative_tolerance = 0.01, absolute_tolerance = 1e-3;
  double largest = 0, worst = 0, wanted = 0;
  std::size_t at = 0;
  std::vector<float> changed = values;
  const auto value_at = [&](std::size_t i, double offset) {
    changed[i] = static_cast<float>(static_cast<double>(values[i]) + offset);
    const double result = function(changed);
    changed[i] = values[i];
    return result;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double near = value_at(i, step) - value_at(i, -step);
    const double far = value_at(i, 2 * step) - value_at(i, -2 * step);
    const double slope = (8 * near - far) / (12 * step);
    largest = std::max({largest, std::abs(slope), static_cast<double>(std::abs(gradient[i]))});
    const double error = std::abs(slope - static_cast<double>(gradient[i]));
    if (error > worst || !std::isfinite(error)) {
      worst = error;
      wanted = slope;
      at = i;
      if (!std::isfinite(error)) break;
    }
  }
  if (std::isfinite(worst) && worst <= absolute_tolerance + relative_tolerance * largest) return {};
  return fmt::format("{}: element {} is {}, but finite differences give {:.6g}", what, at, gradient[at],
                     wanted);
}

double weighed_sum(const std::vector<float>& weights, const std::vector<float>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += static_cast<double>(weights[i]) * static_cast<double>(values[i]);
  return sum;
}

std::vector<float> sample(std::size_t count, unsigned seed, float scale) {
  const PhiloxStream stream(seed, "plugin check");
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * static_cast<float>(stream.normal(i));
  return values;
}

}  // namespace mulligan
