#include "framework/artifact/quantize.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mulligan/half_of_double.hpp>
#include <mulligan/kernel.hpp>

#include "framework/core/error.h"

namespace mulligan {
namespace {

bool matches(const QuantizeTensorRow& row, const std::string& name) {
  return fnmatch(row.match.c_str(), name.c_str(), 0) == 0;
}

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

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

// Between neighbours linear.
double quantile_of_magnitudes(std::span<const float> row, double quantile) {
  std::vector<double> values;
  for (const float weight : row) values.push_back(std::abs(weight));
  const double place = quantile * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::ranges::nth_element(values, below);
  const double above = below + 1 == values.end() ? *below : *std::min_element(below + 1, values.end());
  return *below + (above - *below) * (place - std::floor(place));
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

std::string_view format_word(TensorFormat format) {
  switch (format) {
    case TensorFormat::integer:
      return "int";
    case TensorFormat::int8_row:
      return "int8_row";
    case TensorFormat::fp16:
      return "fp16";
    case TensorFormat::bf16:
      return "bf16";
    case TensorFormat::fp32:
      return "fp32";
  }
  return "";
}

std::vector<const QuantizeTensorRow*> resolve_quantize_table(std::span<const ArtifactPart> parts,
                                                             std::span<const QuantizeTensorRow> rows) {
  std::vector<const QuantizeTensorRow*> taken;
  std::vector<bool> busy(rows.size(), false);
  for (const ArtifactPart& part : parts) {
    std::size_t index = 0;
    while (index < rows.size() && !matches(rows[index], part.name)) ++index;
    if (index == rows.size()) {
      throw config_error(
          "{}: the tensor '{}' is matched by no row of [[quantize.tensors]]; add a row for it, or a last row "
          "with match = \"*\" and format = \"fp16\".",
          rows.empty() ? "[quantize]" : rows.back().origin.text(), part.name);
    }
    if (rows[index].format == TensorFormat::integer && part.type.rank < 2) {
      throw config_error(
          "{}: the row \"{}\" stores '{}' as int, but {} has no rows to scale; take format = \"fp16\" for it "
          "in a row before.",
          rows[index].origin.text(), rows[index].match, part.name, part.type.text());
    }
    busy[index] = true;
    taken.push_back(&rows[index]);
  }
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (busy[index]) continue;
    throw config_error(
        "{}: the row of [[quantize.tensors]] with match = \"{}\" takes no tensor; its pattern matches none, "
        "or rows before it take all it matches: move it up, correct it, or remove it.",
        rows[index].origin.text(), rows[index].match);
  }
  return taken;
}

QuantizedTensor quantize_int8_rows(std::string name, std::vector<std::int64_t> shape,
                                   std::span<const float> weights, double clip_quantile, double least_range) {
  QuantizedTensor tensor{std::move(name), std::move(shape), TensorFormat::int8_row, 8, {}, {}, {}};
  const auto columns = static_cast<std::size_t>(tensor.columns());
  tensor.codes.reserve(weights.size());
  for (std::size_t begin = 0; begin < weights.size(); begin += columns) {
    const auto row = weights.subspan(begin, columns);
    const double clip = quantile_of_magnitudes(row, clip_quantile);
    const double range = std::max({clip, least_range, static_cast<double>(1e-8F)});
    tensor.scales.push_back(sdk::half_bits(range / 127.0));
    for (const float weight : row) {
      const double clipped = std::clamp(static_cast<double>(weight), -clip, clip);
      tensor.codes.push_back(static_cast<std::int8_t>(std::nearbyint(clipped / range * 127.0)));
    }
  }
  return tensor;
}

QuantizedTensor store_as(TensorFormat format, std::string name, std::vector<std::int64_t> shape,
                         std::span<const float> weights) {
  QuantizedTensor tensor{std::move(name), std::move(shape), format, 0, {}, {}, {}};
  for (const float weight : weights) {
    if (format == TensorFormat::fp16) {
      const std::uint16_t bits = sdk::half_bits(weight);
      if (std::isinf(sdk::half_value(bits))) {
        throw run_error("the tensor '{}' holds {}, beyond fp16's largest number 65504; store it as bf16",
                        tensor.name, weight);
      }
      append(tensor.values, bits);
    } else if (format == TensorFormat::bf16) {
      append(tensor.values, sdk::bfloat16(weight).bits);
    } else {
      append(tensor.values, weight);
    }
  }
  return tensor;
}

std::vector<float> dequantize(const QuantizedTensor& tensor) {
  if (tensor.format == TensorFormat::integer || tensor.format == TensorFormat::int8_row)
    return of_codes(tensor);
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
