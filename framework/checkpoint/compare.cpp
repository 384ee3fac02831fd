#include "framework/checkpoint/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "framework/checkpoint/float_formats.h"

namespace mulligan {

MagnitudeReport test_magnitudes(std::span<const float> values) {
  constexpr std::size_t most = std::size_t{1} << 18;  // at even distances: enough for two digits
  const std::size_t stride = std::max<std::size_t>(1, values.size() / most);
  std::vector<double> logs;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    if (values[i] != 0 && std::isfinite(values[i]))
      logs.push_back(std::log2(std::abs(static_cast<double>(values[i]))));
  }
  if (logs.empty()) return {};
  const auto count = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const auto middle = logs.begin() + static_cast<std::ptrdiff_t>(logs.size() / 2);
  std::ranges::nth_element(logs, middle);
  MagnitudeReport report{logs.size(), std::sqrt(squares / count), std::exp2(*middle)};
  const double spread = report.log2_spread;
  // The sign and the exponent's upper five bits of a bf16 number are the sign and exponent of an f16 one: weights between 2^-16 and 2
  // turn into numbers between 1/4 and 2.
  const bool elsewhere = spread < 1 && !(report.median >= 0.25 && report.median < 2);
  if (report.count < magnitude_test_elements || elsewhere) return report;
  if (spread < 0.5) {
    report.verdict = MagnitudeVerdict::bf16_read_as_f16;
  } else if (spread > 6) {
    report.verdict = MagnitudeVerdict::f16_read_as_bf16;
  } else if (spread < 0.9 || spread > 3) {
    report.verdict = MagnitudeVerdict::suspicious;
  }
  return report;
}

std::string describe(const MagnitudeReport& report) {
  constexpr const char* meanings[] = {"as weights have it", "unusual for weights, which have about 1.6",
                                      "this looks like BF16 bytes decoded as F16",
                                      "this looks like F16 bytes decoded as BF16, or a wrong byte order"};
  return fmt::format("the spread of log2|x| is {:.2f} (median |x| {:.3g}): {}", report.log2_spread,
                     report.median, meanings[static_cast<int>(report.verdict)]);
}

namespace {

std::string kind(const StoredTensor& tensor) {
  return fmt::format("{} [{}]", stored_name(tensor.type), fmt::join(tensor.shape, ", "));
}

std::string compare(const StoredTensor& a, const StoredTensor& b) {
  if (a.type != b.type || a.shape != b.shape) return fmt::format("is {} and {}", kind(a), kind(b));
  if (std::ranges::equal(a.bytes, b.bytes)) return {};
  const std::size_t size = sdk::dtype_bytes(a.type), count = a.element_count();
  std::size_t different = 0, first = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::ranges::equal(a.bytes.subspan(i * size, size), b.bytes.subspan(i * size, size))) continue;
    ++different;
    first = std::min(first, i);
  }
  std::string text = fmt::format("differs in {} of {} elements, first at {}", different, count, first);
  if (!is_weight_format(a.type)) return text;
  const std::vector<float> left = decode_weights(a.bytes, a.type), right = decode_weights(b.bytes, b.type);
  double largest = 0, squares = 0, reference = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(left[i]) - static_cast<double>(right[i]);
    largest = std::max(largest, std::abs(difference));
    squares += difference * difference;
    reference += static_cast<double>(left[i]) * static_cast<double>(left[i]);
  }
  return text + fmt::format(", at most by {:.3g}, relative norm {:.3g}", largest,
                            reference > 0 ? std::sqrt(squares / reference) : std::sqrt(squares));
}

}  // namespace

std::vector<TensorDifference> compare_tensors(const SafetensorsFile& first, const SafetensorsFile& second) {
  std::vector<TensorDifference> differences;
  for (const StoredTensor& tensor : first.tensors()) {
    const StoredTensor* other = second.find(tensor.name);
    const std::string what = other ? compare(tensor, *other) : "only in the first";
    if (!what.empty()) differences.push_back({tensor.name, what});
  }
  for (const StoredTensor& tensor : second.tensors()) {
    if (!first.find(tensor.name)) differences.push_back({tensor.name, "only in the second"});
  }
  std::ranges::sort(differences, {}, &TensorDifference::name);
  return differences;
}

}  // namespace mulligan
