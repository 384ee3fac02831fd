#include "framework/artifact/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mulligan/half.hpp>

#include "framework/artifact/artifact_layout.h"
#include "framework/core/error.h"
#include "framework/plugin/plugin_threads.h"
#include "framework/plugin/quantizer.h"

namespace mulligan {
namespace {

template <typename Choice>
struct Collected {
  std::span<const mlg_quantize_tensor> tensors;
  std::vector<Choice> by_tensor;
  std::string mistake;  // the first; calls from a plugin cannot throw

  // The tensor's choice, or nullptr when there is no such tensor.
  Choice* at(std::int64_t tensor) {
    if (tensor >= 0 && tensor < static_cast<std::int64_t>(tensors.size())) {
      return &by_tensor[static_cast<std::size_t>(tensor)];
    }
    note(fmt::format("chose tensor {} of {}", tensor, tensors.size()));
    return nullptr;
  }
  void note(std::string what) {
    if (mistake.empty()) mistake = std::move(what);
  }
  void require_sound() const {
    if (!mistake.empty()) throw run_error("the quantiser {}; this is a mistake of the plugin", mistake);
  }
};

using Columns = Collected<ProtectedColumns>;
using Corrections = Collected<LowRankCorrection>;

void add_group(void* context, std::int64_t tensor, std::int64_t start) {
  auto& columns = *static_cast<Columns*>(context);
  if (ProtectedColumns* chosen = columns.at(tensor)) chosen->starts.push_back(start);
}

bool take_scales(const float* scales, std::int64_t count, std::vector<std::uint16_t>& taken) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(scales[i]) || scales[i] < 0 || sdk::round_to_half(scales[i]) != scales[i])
      return false;
    taken.push_back(sdk::half_bits(scales[i]));
  }
  return true;
}

void add_correction(void* context, std::int64_t tensor, const mlg_low_rank* given) {
  auto& corrections = *static_cast<Corrections*>(context);
  LowRankCorrection* chosen = corrections.at(tensor);
  if (!chosen) return;
  const mlg_quantize_tensor& shape = corrections.tensors[static_cast<std::size_t>(tensor)];
  if (chosen->rank > 0) return corrections.note(fmt::format("corrected '{}' twice", shape.name));
  if (given->rank < 1 || given->rank > std::min(shape.rows, shape.columns) || given->left_group < 1 ||
      given->right_group < 1) {
    return corrections.note(fmt::format("corrected '{}' with rank {}, groups of {} and {}", shape.name,
                                        given->rank, given->left_group, given->right_group));
  }
  const std::int64_t left = shape.rows * given->rank, right = given->rank * shape.columns;
  chosen->rank = given->rank;
  chosen->left_group = given->left_group;
  chosen->right_group = given->right_group;
  chosen->left.assign(given->left, given->left + left);
  chosen->right.assign(given->right, given->right + right);
  if (!take_scales(given->left_scales, group_count(left, given->left_group), chosen->left_scales) ||
      !take_scales(given->right_scales, group_count(right, given->right_group), chosen->right_scales)) {
    corrections.note(fmt::format("corrected '{}' with a scale that fp16 does not hold", shape.name));
  }
}

}  // namespace

std::vector<ProtectedColumns> chosen_columns(const Quantizer& quantizer,
                                             std::span<const mlg_quantize_tensor> tensors) {
  Columns columns{tensors, std::vector<ProtectedColumns>(tensors.size()), {}};
  mlg_quantize_choices choices{&columns, add_group, nullptr, 0, 0};
  quantizer.protect(tensors, choices);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ProtectedColumns& chosen = columns.by_tensor[i];
    if (chosen.starts.empty()) continue;
    chosen.size = choices.protected_size;
    chosen.bits = choices.protected_bits;
    std::ranges::sort(chosen.starts);
    std::int64_t end = 0;
    for (const std::int64_t start : chosen.starts) {
      const bool fits = chosen.size >= 1 && start >= end && start <= tensors[i].columns - chosen.size;
      if (!fits || chosen.bits < 2 || chosen.bits > 8) {
        columns.note(fmt::format("protects columns {} to {} of '{}' with {} bits", start, start + chosen.size,
                                 tensors[i].name, chosen.bits));
      }
      end = start + chosen.size;
    }
  }
  columns.require_sound();
  return std::move(columns.by_tensor);
}

namespace {

// By tensor of the list, rank 0 where there is none.
std::vector<LowRankCorrection> chosen_corrections(const Quantizer& quantizer,
                                                  std::span<const mlg_quantize_tensor> tensors) {
  Corrections corrections{tensors, std::vector<LowRankCorrection>(tensors.size()), {}};
  mlg_quantize_choices choices{&corrections, nullptr, add_correction, 0, 0};
  quantizer.correct(tensors, choices);
  corrections.require_sound();
  return std::move(corrections.by_tensor);
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

std::vector<std::int64_t> shape_of(const TensorType& type) {
  return {type.dims.begin(), type.dims.begin() + type.rank};
}

void require_sound(const std::string& name, std::span<const std::int8_t> codes, int bits,
                   std::span<const float> scales) {
  const int qmax = (1 << (bits - 1)) - 1;
  for (const std::int8_t code : codes) {
    if (std::abs(code) > qmax) {
      throw run_error(
          "the quantiser gave the code {} in '{}', outside of [-{}, {}]; this is a mistake of the plugin",
          code, name, qmax, qmax);
    }
  }
  for (const float scale : scales) {
    if (!std::isfinite(scale) || sdk::round_to_half(scale) != scale) {
      throw run_error(
          "the quantiser gave the scale {} in '{}', which fp16 does not hold; this is a mistake of the "
          "plugin",
          scale, name);
    }
  }
}

std::vector<std::uint16_t> stored_scales(std::span<const float> scales) {
  std::vector<std::uint16_t> bits;
  for (const float scale : scales) bits.push_back(sdk::half_bits(scale));
  return bits;
}

class ModelQuantization {
 public:
  ModelQuantization(const ModelConfig& model, std::span<const QuantizeTensorRow> rows,
                    const QuantizeSources& sources)
      : sources_(sources), parts_(artifact_parts(model)), table_(resolve_quantize_table(parts_, rows)) {
    integer_ = integer_shapes(parts_, table_);
    chooses_ = !integer_.empty() && sources.quantizer->extra_bytes(integer_) > 0;
  }

  QuantizedModel run() {
    QuantizedModel quantized;
    if (chooses_) {
      for_integer_parts([&](std::size_t i, mlg_quantize_tensor& tensor) {
        tensor.weight = weights_of(parts_[i]).data();
        if (moments(parts_[i])) tensor.input_rms = input_rms_of(*parts_[i].input).data();
      });
      protected_ = chosen_columns(*sources_.quantizer, integer_);
    }
    std::size_t integers = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto weights = weights_of(parts_[i]);
      require_finite(parts_[i].name, weights);
      double error = 0;
      if (table_[i]->format == TensorFormat::integer) {
        quantized.tensors.push_back(
            quantize_integer(i, weights, chooses_ ? protected_[integers] : ProtectedColumns(), error));
        ++integers;
      } else if (table_[i]->format == TensorFormat::int8_row) {
        quantized.tensors.push_back(quantize_int8_rows(parts_[i].name, shape_of(parts_[i].type), weights,
                                                       table_[i]->clip_quantile, table_[i]->least_range));
      } else {
        quantized.tensors.push_back(
            store_as(table_[i]->format, parts_[i].name, shape_of(parts_[i].type), weights));
      }
      quantized.squared_error.push_back(error);
      if (sources_.quantized) sources_.quantized(parts_[i].type.elements());
    }
    if (chooses_) correct(quantized);
    return quantized;
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
  bool moments(const ArtifactPart& part) const { return part.input && sources_.quantizer->needs_hessian(); }

  const std::vector<float>& input_rms_of(const TapPoint& point) {
    auto [rms, fresh] = input_rms_.try_emplace(point);
    if (fresh) rms->second = sources_.input_rms(point);
    return rms->second;
  }

  QuantizedTensor quantize_integer(std::size_t index, std::span<const float> weights, ProtectedColumns fine,
                                   double& error) {
    const ArtifactPart& part = parts_[index];
    const QuantizeTensorRow& row = *table_[index];
    QuantizedTensor tensor{
        part.name, shape_of(part.type), TensorFormat::integer, static_cast<int>(row.bits), {}, {}, {}};
    const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
    std::vector<std::int8_t> codes(weights.size());
    std::vector<float> scales(static_cast<std::size_t>(rows)),
        fine_scales(fine.starts.empty() ? 0 : scales.size());
    std::vector<float> hessian, rms;
    if (moments(part)) {
      hessian = sources_.hessian(*part.input);
      if (sources_.input_rms) rms = input_rms_of(*part.input);
    }
    const mlg_quantize_request request{part.name.c_str(),
                                       weights.data(),
                                       hessian.empty() ? nullptr : hessian.data(),
                                       rows,
                                       columns,
                                       tensor.bits,
                                       row.clip_sigmas,
                                       plugin_parallel_for,
                                       rms.empty() ? nullptr : rms.data(),
                                       fine.starts.empty() ? nullptr : fine.starts.data(),
                                       static_cast<std::int64_t>(fine.starts.size()),
                                       fine.size,
                                       fine.bits};
    mlg_quantize_result result{codes.data(), scales.data(), 0,
                               fine_scales.empty() ? nullptr : fine_scales.data()};
    const PluginThreads threads(sources_.threads);
    sources_.quantizer->quantize(request, result);
    error = result.squared_error;
    tensor.scales = stored_scales(scales);
    if (fine.starts.empty()) {
      tensor.codes = std::move(codes);
    } else {
      const std::vector<bool> mask = fine.mask(columns);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        (mask[i % static_cast<std::size_t>(columns)] ? fine.codes : tensor.codes).push_back(codes[i]);
      }
      require_sound(part.name, fine.codes, fine.bits, fine_scales);
      fine.scales = stored_scales(fine_scales);
    }
    require_sound(part.name, tensor.codes, tensor.bits, scales);
    tensor.protected_columns = std::move(fine);
    return tensor;
  }

  void correct(QuantizedModel& quantized) {
    std::vector<std::vector<float>> read_back;
    for_integer_parts([&](std::size_t i, mlg_quantize_tensor& tensor) {
      read_back.push_back(dequantize(quantized.tensors[i]));
      tensor.read_back = read_back.back().data();
    });
    std::vector<LowRankCorrection> corrections = chosen_corrections(*sources_.quantizer, integer_);
    auto next = corrections.begin();
    for_integer_parts(
        [&](std::size_t i, mlg_quantize_tensor&) { quantized.tensors[i].correction = std::move(*next++); });
  }

  const QuantizeSources& sources_;
  std::vector<ArtifactPart> parts_;
  std::vector<const QuantizeTensorRow*> table_;
  std::vector<mlg_quantize_tensor> integer_;  // the int tensors, in the model's order
  bool chooses_ = false;                      // the quantiser wants to see the whole model
  std::map<std::string, std::vector<float>> parameters_;
  std::map<TapPoint, std::vector<float>> input_rms_;
  std::vector<ProtectedColumns> protected_;  // as integer_
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

QuantizedModel quantize_model(const ModelConfig& model, std::span<const QuantizeTensorRow> rows,
                              const QuantizeSources& sources) {
  return ModelQuantization(model, rows, sources).run();
}

}  // namespace mulligan
