#include "framework/artifact/quantize.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
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

std::vector<const QuantizeTensorRow*> resolve_quantize_table(std::span<const ArtifactPart> parts,
                                                             std::span<const QuantizeTensorRow> rows) {
  std::vector<const QuantizeTensorRow*> taken;
  std::vector<bool> busy(rows.size(), false);
  for (const ArtifactPart& part : parts) {
    std::size_t index = 0;
    while (index < rows.size() && !matches(rows[index], part.name)) ++index;
    config_error_if(
        index == rows.size(),
        "{}: the tensor '{}' is matched by no row of [[quantize.tensors]]; add a row for it, or a last row "
        "with match = \"*\" and format = \"fp16\".",
        rows.empty() ? "[quantize]" : rows.back().origin.text(), part.name);
    config_error_if(
        rows[index].format == TensorFormat::integer && part.type.rank < 2,
        "{}: the row \"{}\" stores '{}' as int, but {} has no rows to scale; take format = \"fp16\" for it "
        "in a row before.",
        rows[index].origin.text(), rows[index].match, part.name, part.type.text());
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

}  // namespace mulligan
