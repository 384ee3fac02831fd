#include "framework/checkpoint/magnitude.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace mulligan {

std::optional<MagnitudeReport> test_magnitudes(std::span<const float> values) {
  std::vector<float> magnitudes;
  double sum = 0, squares = 0;
  for (const float value : values) {
    if (value == 0.0f || !std::isfinite(value)) continue;
    magnitudes.push_back(std::abs(value));
    const double exponent = std::log2(static_cast<double>(magnitudes.back()));
    sum += exponent;
    squares += exponent * exponent;
  }
  if (magnitudes.size() < magnitude_test_elements) return {};
  const auto count = static_cast<double>(magnitudes.size());
  const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  MagnitudeReport report;
  report.log2_spread = std::sqrt(std::max(0.0, squares / count - (sum / count) * (sum / count)));
  report.median = *middle;
  if (report.log2_spread < 0.5) {
    report.verdict = MagnitudeVerdict::bf16_read_as_f16;
  } else if (report.log2_spread > 6) {
    report.verdict = MagnitudeVerdict::f16_read_as_bf16;
  } else if (report.log2_spread < 0.9 || report.log2_spread > 3) {
    report.verdict = MagnitudeVerdict::suspicious;
  }
  return report;
}

std::string describe(const MagnitudeReport& report) {
  const char* meaning = "";
  switch (report.verdict) {
    case MagnitudeVerdict::plausible:
      meaning = "as weights have it";
      break;
    case MagnitudeVerdict::suspicious:
      meaning = "unusual for weights, which have about 1.6";
      break;
    case MagnitudeVerdict::bf16_read_as_f16:
      meaning = "this looks like BF16 bytes decoded as F16";
      break;
    case MagnitudeVerdict::f16_read_as_bf16:
      meaning = "this looks like F16 bytes decoded as BF16, or a wrong byte order";
      break;
  }
  return fmt::format("the spread of log2|x| is {:.2f} (median |x| {:.3g}): {}", report.log2_spread,
                     report.median, meaning);
}

}  // namespace mulligan
