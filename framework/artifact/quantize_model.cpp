#include "framework/artifact/quantize_model.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <mulligan/half_of_double.hpp>
#include <mulligan/kernel.hpp>
#include <utility>

#include "framework/artifact/artifact_layout.h"
#include "framework/core/error.h"
#include "framework/plugin/plugin_threads.h"
#include "framework/plugin/quantizer.h"

namespace mulligan {
namespace {

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
    while (index < rows.size() && fnmatch(rows[index].match.c_str(), part.name.c_str(), 0) != 0) ++index;
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

namespace {

template <typename... Args>
Error mistake(fmt::format_string<Args...> format, Args&&... args) {
  return run_error("the quantiser {}; this is a mistake of the plugin",
                   fmt::format(format, std::forward<Args>(args)...));
}

void require_codes(const std::string& name, std::span<const std::int8_t> codes, int bits) {
  const int qmax = (1 << (bits - 1)) - 1;
  for (const std::int8_t code : codes) {
    if (std::abs(code) > qmax)
      throw mistake("gave the code {} in '{}', outside of [-{}, {}]", code, name, qmax, qmax);
  }
}

std::vector<std::uint16_t> stored_scales(const std::string& name, std::span<const float> scales) {
  constexpr std::uint16_t infinity = 0x7C00;  // negative numbers are beyond it
  std::vector<std::uint16_t> stored;
  for (const float scale : scales) {
    stored.push_back(sdk::half_bits(scale));
    if (stored.back() >= infinity || sdk::half_value(stored.back()) != scale)
      throw mistake("gave the scale {} in '{}', which fp16 does not hold", scale, name);
  }
  return stored;
}

void require_tensor(std::int64_t tensor, std::size_t tensors) {
  if (tensor < 0 || tensor >= static_cast<std::int64_t>(tensors))
    throw mistake("chose tensor {} of {}", tensor, tensors);
}

using Groups = std::vector<std::pair<std::int64_t, std::int64_t>>;  // tensor and first column

void add_group(void* context, std::int64_t tensor, std::int64_t start) noexcept {
  static_cast<Groups*>(context)->emplace_back(tensor, start);
}

// Throws for a correction that its tensor cannot have.
void take_correction(std::span<const mlg_quantize_tensor> tensors, std::int64_t tensor,
                     const mlg_low_rank& given, std::vector<LowRankCorrection>& by_tensor) {
  require_tensor(tensor, tensors.size());
  const mlg_quantize_tensor& shape = tensors[static_cast<std::size_t>(tensor)];
  LowRankCorrection& chosen = by_tensor[static_cast<std::size_t>(tensor)];
  if (chosen.rank > 0) throw mistake("corrected '{}' twice", shape.name);
  if (given.rank < 1 || given.rank > std::min(shape.rows, shape.columns) || given.left_group < 1 ||
      given.right_group < 1) {
    throw mistake("corrected '{}' with rank {}, groups of {} and {}", shape.name, given.rank,
                  given.left_group, given.right_group);
  }
  const std::int64_t left = shape.rows * given.rank, right = given.rank * shape.columns;
  const auto scales = [&](const float* first, std::int64_t codes, std::int64_t group) {
    return stored_scales(shape.name, {first, first + group_count(codes, group)});
  };
  chosen = {given.rank,
            given.left_group,
            given.right_group,
            {given.left, given.left + left},
            {given.right, given.right + right},
            scales(given.left_scales, left, given.left_group),
            scales(given.right_scales, right, given.right_group)};
}

}  // namespace

std::vector<ProtectedColumns> chosen_columns(const Quantizer& quantizer,
                                             std::span<const mlg_quantize_tensor> tensors) {
  Groups groups;
  mlg_quantize_choices choices{&groups, add_group, nullptr, 0, 0};
  quantizer.protect(tensors, choices);
  std::vector<ProtectedColumns> by_tensor(tensors.size());
  for (const auto& [tensor, start] : groups) {
    require_tensor(tensor, tensors.size());
    by_tensor[static_cast<std::size_t>(tensor)].starts.push_back(start);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ProtectedColumns& chosen = by_tensor[i];
    if (chosen.starts.empty()) continue;
    chosen.size = choices.protected_size;
    chosen.bits = choices.protected_bits;
    std::ranges::sort(chosen.starts);
    std::int64_t end = 0;
    for (const std::int64_t start : chosen.starts) {
      const bool fits = chosen.size >= 1 && start >= end && start <= tensors[i].columns - chosen.size;
      if (!fits || chosen.bits < 2 || chosen.bits > 8) {
        throw mistake("protects columns {} to {} of '{}' with {} bits", start, start + chosen.size,
                      tensors[i].name, chosen.bits);
      }
      end = start + chosen.size;
    }
  }
  return by_tensor;
}

namespace {

void require_finite(const std::string& name, std::span<const float> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(weights[i])) continue;
    throw run_error(
        "element {} of the tensor '{}' is {}, so the model cannot be quantised; the training run has "
        "diverged",
        i, name, weights[i]);
  }
}

std::vector<std::int64_t> shape_of(const TensorType& type) {
  return {type.dims.begin(), type.dims.begin() + type.rank};
}

class ModelQuantization {
 public:
  ModelQuantization(const ModelConfig& model, std::span<const QuantizeTensorRow> rows,
                    const QuantizeSources& sources)
      : sources_(sources), parts_(artifact_parts(model)), table_(resolve_quantize_table(parts_, rows)) {
    integer_ = integer_shapes(parts_, table_);
    chooses_ = !integer_.empty() && sources.quantizer->extra_bytes(integer_) > 0;
  }

  std::vector<QuantizedTensor> run() {
    std::vector<QuantizedTensor> tensors;
    std::vector<ProtectedColumns> fine(integer_.size());
    if (chooses_) {
      for_integer_parts([&](std::size_t i, mlg_quantize_tensor& tensor) {
        tensor.weight = weights_of(parts_[i]).data();
        if (has_moments(parts_[i])) tensor.input_rms = input_rms_of(*parts_[i].input).data();
      });
      fine = chosen_columns(*sources_.quantizer, integer_);
    }
    auto next = fine.begin();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const ArtifactPart& part = parts_[i];
      const QuantizeTensorRow& row = *table_[i];
      const auto weights = weights_of(part);
      require_finite(part.name, weights);
      if (row.format == TensorFormat::integer) {
        tensors.push_back(quantize_integer(part, row, weights, std::move(*next++)));
      } else if (row.format == TensorFormat::int8_row) {
        tensors.push_back(
            quantize_int8_rows(part.name, shape_of(part.type), weights, row.clip_quantile, row.least_range));
      } else {
        tensors.push_back(store_as(row.format, part.name, shape_of(part.type), weights));
      }
      if (sources_.quantized) sources_.quantized(part.type.elements());
    }
    if (chooses_) correct(tensors);
    return tensors;
  }

 private:
  // Calls body(index of the part, its entry of integer_) for all int tensors.
  template <typename Body>
  void for_integer_parts(Body&& body) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (table_[i]->format == TensorFormat::integer) body(i, integer_[next++]);
    }
  }

  std::span<const float> weights_of(const ArtifactPart& part) {
    auto [whole, fresh] = parameters_.try_emplace(part.parameter);
    if (fresh) whole->second = sources_.weights(part.parameter);
    return std::span<const float>(whole->second)
        .subspan(static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.type.elements()));
  }

  // Whether second moments of what the part is multiplied with are known.
  bool has_moments(const ArtifactPart& part) const {
    return part.input && sources_.quantizer->needs_hessian();
  }

  const std::vector<float>& input_rms_of(const TapPoint& point) {
    auto [rms, fresh] = input_rms_.try_emplace(point);
    if (fresh) rms->second = sources_.moments(point).rms;
    return rms->second;
  }

  QuantizedTensor quantize_integer(const ArtifactPart& part, const QuantizeTensorRow& row,
                                   std::span<const float> weights, ProtectedColumns fine) {
    QuantizedTensor tensor{
        part.name, shape_of(part.type), TensorFormat::integer, static_cast<int>(row.bits), {}, {}, {}};
    const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
    std::vector<std::int8_t> codes(weights.size());
    std::vector<float> scales(static_cast<std::size_t>(rows)),
        fine_scales(fine.starts.empty() ? 0 : scales.size());
    InputMoments moments;
    if (has_moments(part)) moments = sources_.moments(*part.input);
    const mlg_quantize_request request{part.name.c_str(),
                                       weights.data(),
                                       moments.hessian.empty() ? nullptr : moments.hessian.data(),
                                       rows,
                                       columns,
                                       tensor.bits,
                                       row.clip_sigmas,
                                       plugin_parallel_for,
                                       moments.rms.empty() ? nullptr : moments.rms.data(),
                                       fine.starts.empty() ? nullptr : fine.starts.data(),
                                       static_cast<std::int64_t>(fine.starts.size()),
                                       fine.size,
                                       fine.bits};
    mlg_quantize_result result{codes.data(), scales.data(), 0,
                               fine_scales.empty() ? nullptr : fine_scales.data()};
    set_plugin_threads(sources_.threads);
    sources_.quantizer->quantize(request, result);
    tensor.scales = stored_scales(part.name, scales);
    if (fine.starts.empty()) {
      tensor.codes = std::move(codes);
    } else {
      const std::vector<bool> mask = fine.mask(columns);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        (mask[i % static_cast<std::size_t>(columns)] ? fine.codes : tensor.codes).push_back(codes[i]);
      }
      require_codes(part.name, fine.codes, fine.bits);
      fine.scales = stored_scales(part.name, fine_scales);
    }
    require_codes(part.name, tensor.codes, tensor.bits);
    tensor.protected_columns = std::move(fine);
    return tensor;
  }

  void correct(std::vector<QuantizedTensor>& tensors) {
    std::vector<std::vector<float>> read_back;
    for_integer_parts([&](std::size_t i, mlg_quantize_tensor& tensor) {
      read_back.push_back(dequantize(tensors[i]));
      tensor.read_back = read_back.back().data();
    });
    std::vector<LowRankCorrection> chosen(integer_.size());
    std::exception_ptr mistaken;  // the plugin's call cannot throw
    auto take = [&](std::int64_t tensor, const mlg_low_rank* given) {
      try {
        if (!mistaken) take_correction(integer_, tensor, *given, chosen);
      } catch (...) {
        mistaken = std::current_exception();
      }
    };
    const auto call = [](void* context, std::int64_t tensor, const mlg_low_rank* given) {
      (*static_cast<decltype(take)*>(context))(tensor, given);
    };
    mlg_quantize_choices choices{&take, nullptr, call, 0, 0};
    sources_.quantizer->correct(integer_, choices);
    if (mistaken) std::rethrow_exception(mistaken);
    auto next = chosen.begin();
    for_integer_parts(
        [&](std::size_t i, mlg_quantize_tensor&) { tensors[i].correction = std::move(*next++); });
  }

  const QuantizeSources& sources_;
  std::vector<ArtifactPart> parts_;
  std::vector<const QuantizeTensorRow*> table_;
  std::vector<mlg_quantize_tensor> integer_;  // the int tensors, in the model's order
  bool chooses_ = false;                      // the quantiser wants to see the whole model
  std::map<std::string, std::vector<float>> parameters_;
  std::map<TapPoint, std::vector<float>> input_rms_;
};

}  // namespace

std::vector<mlg_quantize_tensor> integer_shapes(std::span<const ArtifactPart> parts,
                                                std::span<const QuantizeTensorRow* const> table) {
  std::vector<mlg_quantize_tensor> shapes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (table[i]->format != TensorFormat::integer) continue;
    const TensorType& type = parts[i].type;
    const std::int64_t columns = type.dims[static_cast<std::size_t>(type.rank - 1)];
    shapes.push_back({parts[i].name.c_str(), type.elements() / columns, columns,
                      static_cast<std::int32_t>(table[i]->bits), table[i]->clip_sigmas, nullptr, nullptr,
                      nullptr});
  }
  return shapes;
}

std::vector<QuantizedTensor> quantize_model(const ModelConfig& model, std::span<const QuantizeTensorRow> rows,
                                            const QuantizeSources& sources) {
  return ModelQuantization(model, rows, sources).run();
}

}  // namespace mulligan
