#include "framework/artifact/model_choices.h"

#include <algorithm>
#include <cmath>
#include <mulligan/half.hpp>
#include <string>

#include "framework/artifact/artifact_layout.h"
#include "framework/core/error.h"
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

std::vector<LowRankCorrection> chosen_corrections(const Quantizer& quantizer,
                                                  std::span<const mlg_quantize_tensor> tensors) {
  Corrections corrections{tensors, std::vector<LowRankCorrection>(tensors.size()), {}};
  mlg_quantize_choices choices{&corrections, nullptr, add_correction, 0, 0};
  quantizer.correct(tensors, choices);
  corrections.require_sound();
  return std::move(corrections.by_tensor);
}

}  // namespace mulligan
