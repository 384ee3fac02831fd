#include "framework/artifact/quantize.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mulligan/half.hpp>
#include <mulligan/kernel.hpp>

#include "framework/core/error.h"
#include "framework/core/parallel.h"
#include "framework/plugin/quantizer.h"

namespace mulligan {
namespace {

bool matches(const QuantizeTensorRow& row, const std::string& name) {
  return fnmatch(row.match.c_str(), name.c_str(), 0) == 0;
}

void require_finite(const std::string& name, std::span<const float> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(weights[i])) continue;
    throw run_error(
        "element {} of the tensor '{}' is {}, so the model cannot be quantised; the training run has "
        "diverged",
        i, name, weights[i]);
  }
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

// The threads of the quantisation under way, for the plugin's parallel_for (a C function without an object).
thread_local int plugin_threads = 0;

void plugin_parallel_for(std::int64_t count, std::int64_t grain,
                         void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context) {
  // Enough pieces for an even load, none below the grain.
  constexpr std::int64_t pieces = 64;
  const std::int64_t piece = std::max({std::int64_t{1}, grain, (count + pieces - 1) / pieces});
  parallel_for(static_cast<std::size_t>((count + piece - 1) / piece), plugin_threads, [&](std::size_t index) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * piece;
    body(context, begin, std::min(count, begin + piece));
  });
}

std::vector<std::int64_t> shape_of(const TensorType& type) {
  return {type.dims.begin(), type.dims.begin() + type.rank};
}

void require_sound(const QuantizedTensor& tensor, std::span<const float> scales) {
  const int qmax = (1 << (tensor.bits - 1)) - 1;
  for (const std::int8_t code : tensor.codes) {
    if (std::abs(code) > qmax) {
      throw run_error(
          "the quantiser gave the code {} in '{}', outside of [-{}, {}]; this is a mistake of the plugin",
          code, tensor.name, qmax, qmax);
    }
  }
  for (const float scale : scales) {
    if (!std::isfinite(scale) || sdk::round_to_half(scale) != scale) {
      throw run_error(
          "the quantiser gave the scale {} in '{}', which fp16 does not hold; this is a mistake of the "
          "plugin",
          scale, tensor.name);
    }
  }
}

QuantizedTensor quantize_integer(const ArtifactPart& part, const QuantizeTensorRow& row,
                                 std::span<const float> weights, std::span<const float> hessian,
                                 const QuantizeSources& sources, double& error) {
  QuantizedTensor tensor{
      part.name, shape_of(part.type), TensorFormat::integer, static_cast<int>(row.bits), {}, {}, {}};
  const std::int64_t rows = tensor.elements() / tensor.columns();
  tensor.codes.resize(weights.size());
  std::vector<float> scales(static_cast<std::size_t>(rows));
  const mlg_quantize_request request{part.name.c_str(),
                                     weights.data(),
                                     hessian.empty() ? nullptr : hessian.data(),
                                     rows,
                                     tensor.columns(),
                                     tensor.bits,
                                     row.clip_sigmas,
                                     plugin_parallel_for,
                                     nullptr,
                                     nullptr,
                                     0,
                                     0,
                                     0};
  mlg_quantize_result result{tensor.codes.data(), scales.data(), 0, nullptr};
  plugin_threads = sources.threads;
  sources.quantizer->quantize(request, result);
  require_sound(tensor, scales);
  for (const float scale : scales) tensor.scales.push_back(sdk::half_bits(scale));
  error = result.squared_error;
  return tensor;
}

}  // namespace

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
                                   std::span<const float> weights) {
  QuantizedTensor tensor{std::move(name), std::move(shape), TensorFormat::int8_row, 8, {}, {}, {}};
  const auto columns = static_cast<std::size_t>(tensor.columns());
  tensor.codes.reserve(weights.size());
  for (std::size_t begin = 0; begin < weights.size(); begin += columns) {
    const auto row = weights.subspan(begin, columns);
    float largest = 1e-8F;
    for (const float weight : row) largest = std::max(largest, std::abs(weight));
    tensor.scales.push_back(sdk::half_bits(largest / 127.0F));
    for (const float weight : row) {
      const double code = std::nearbyint(static_cast<double>(weight) / largest * 127.0);
      tensor.codes.push_back(static_cast<std::int8_t>(std::clamp(code, -127.0, 127.0)));
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
  const auto count = static_cast<std::size_t>(tensor.elements());
  const auto columns = static_cast<std::size_t>(tensor.columns());
  std::vector<float> weights(count);
  for (std::size_t i = 0; i < count; ++i) {
    switch (tensor.format) {
      case TensorFormat::integer:
      case TensorFormat::int8_row:
        weights[i] = static_cast<float>(tensor.codes[i]) * sdk::half_value(tensor.scales[i / columns]);
        break;
      case TensorFormat::fp16:
        weights[i] = sdk::half_value(element<std::uint16_t>(tensor.values, i));
        break;
      case TensorFormat::bf16:
        weights[i] = static_cast<float>(element<sdk::bfloat16>(tensor.values, i));
        break;
      case TensorFormat::fp32:
        weights[i] = element<float>(tensor.values, i);
        break;
    }
  }
  return weights;
}

QuantizedModel quantize_model(const ModelConfig& model, std::span<const QuantizeTensorRow> rows,
                              const QuantizeSources& sources) {
  const std::vector<ArtifactPart> parts = artifact_parts(model);
  const std::vector<const QuantizeTensorRow*> table = resolve_quantize_table(parts, rows);
  QuantizedModel quantized;
  std::map<std::string, std::vector<float>> parameters;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ArtifactPart& part = parts[i];
    const QuantizeTensorRow& row = *table[i];
    auto [whole, fresh] = parameters.try_emplace(part.parameter);
    if (fresh) whole->second = sources.weights(part.parameter);
    const auto weights =
        std::span<const float>(whole->second)
            .subspan(static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.type.elements()));
    require_finite(part.name, weights);
    double error = 0;
    if (row.format == TensorFormat::integer) {
      std::vector<float> hessian;
      if (part.input && sources.quantizer->needs_hessian()) hessian = sources.hessian(*part.input);
      quantized.tensors.push_back(quantize_integer(part, row, weights, hessian, sources, error));
    } else if (row.format == TensorFormat::int8_row) {
      quantized.tensors.push_back(quantize_int8_rows(part.name, shape_of(part.type), weights));
    } else {
      quantized.tensors.push_back(store_as(row.format, part.name, shape_of(part.type), weights));
    }
    quantized.squared_error.push_back(error);
    if (sources.quantized) sources.quantized(part.type.elements());
  }
  return quantized;
}

}  // namespace mulligan
