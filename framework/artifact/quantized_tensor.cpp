#include "framework/artifact/quantized_tensor.h"

#include <algorithm>
#include <cstring>
#include <mulligan/half.hpp>
#include <mulligan/kernel.hpp>
#include <span>

namespace mulligan {
namespace {

template <typename T>
T element(const std::string& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// The factor's codes with their scales, in f64.
std::vector<double> factor_of(std::span<const std::int8_t> codes, std::span<const std::uint16_t> scales,
                              std::int64_t group) {
  std::vector<double> values;
  values.reserve(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    values.push_back(codes[i] *
                     static_cast<double>(sdk::half_value(scales[i / static_cast<std::size_t>(group)])));
  }
  return values;
}

// weights [rows, columns] += left right, summed in f64.
void add_correction(const LowRankCorrection& correction, std::int64_t columns, std::vector<float>& weights) {
  const auto rank = static_cast<std::size_t>(correction.rank), width = static_cast<std::size_t>(columns);
  const std::vector<double> left = factor_of(correction.left, correction.left_scales, correction.left_group);
  const std::vector<double> right =
      factor_of(correction.right, correction.right_scales, correction.right_group);
  std::vector<double> sums(width);
  for (std::size_t i = 0; i * width < weights.size(); ++i) {
    std::ranges::fill(sums, 0.0);
    for (std::size_t k = 0; k < rank; ++k) {
      for (std::size_t j = 0; j < width; ++j) sums[j] += left[i * rank + k] * right[k * width + j];
    }
    for (std::size_t j = 0; j < width; ++j) {
      float& weight = weights[i * width + j];
      weight = static_cast<float>(static_cast<double>(weight) + sums[j]);
    }
  }
}

std::vector<float> of_codes(const QuantizedTensor& tensor) {
  const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
  const ProtectedColumns& fine = tensor.protected_columns;
  const std::vector<bool> is_fine = fine.mask(columns);
  std::vector<float> weights;
  weights.reserve(static_cast<std::size_t>(tensor.elements()));
  std::size_t usual_at = 0, fine_at = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    const float scale = sdk::half_value(tensor.scales[row]);
    const float fine_scale = fine.starts.empty() ? 0.0F : sdk::half_value(fine.scales[row]);
    for (std::int64_t j = 0; j < columns; ++j) {
      weights.push_back(is_fine[static_cast<std::size_t>(j)]
                            ? static_cast<float>(fine.codes[fine_at++]) * fine_scale
                            : static_cast<float>(tensor.codes[usual_at++]) * scale);
    }
  }
  if (tensor.correction.rank > 0) add_correction(tensor.correction, columns, weights);
  return weights;
}

}  // namespace

std::vector<bool> ProtectedColumns::mask(std::int64_t columns) const {
  std::vector<bool> mask(static_cast<std::size_t>(columns));
  for (const std::int64_t start : starts) std::fill_n(mask.begin() + start, size, true);
  return mask;
}

std::int64_t QuantizedTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  return count;
}

std::vector<float> dequantize(const QuantizedTensor& tensor) {
  if (tensor.bits > 0) return of_codes(tensor);
  const auto count = static_cast<std::size_t>(tensor.elements());
  std::vector<float> weights(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (tensor.format == TensorFormat::fp16) {
      weights[i] = sdk::half_value(element<std::uint16_t>(tensor.values, i));
    } else if (tensor.format == TensorFormat::bf16) {
      weights[i] = static_cast<float>(element<sdk::bfloat16>(tensor.values, i));
    } else {
      weights[i] = element<float>(tensor.values, i);
    }
  }
  return weights;
}

}  // namespace mulligan
