// Quantizer: a quantiser made by a plugin; contracts of the calls in <mulligan/quantizer.h>.
#pragma once

#include <mulligan/quantizer.h>

#include <span>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Quantizer : public PluginInstance<mlg_quantizer_table> {
 public:
  using PluginInstance::PluginInstance;

  // Whether quantize() needs second moments of the layers' inputs.
  bool needs_hessian() const { return table().needs_hessian != 0; }

  // Fills result.codes, result.scales (memory of the caller) and result.squared_error.
  void quantize(const mlg_quantize_request& request, mlg_quantize_result& result) const {
    call(table().quantize, &request, &result);
  }

  // Whether it has stages over the whole model, which the calls below need.
  bool chooses() const { return table().protect && table().correct && table().extra_bytes; }
  void protect(std::span<const mlg_quantize_tensor> tensors, mlg_quantize_choices& choices) const {
    call(table().protect, tensors.data(), static_cast<std::int64_t>(tensors.size()), &choices);
  }
  void correct(std::span<const mlg_quantize_tensor> tensors, mlg_quantize_choices& choices) const {
    call(table().correct, tensors.data(), static_cast<std::int64_t>(tensors.size()), &choices);
  }
  // An upper bound, from shapes alone, of the bytes that both add to the artifact; 0 without stages.
  double extra_bytes(std::span<const mlg_quantize_tensor> tensors) const {
    if (!chooses()) return 0;
    return result<double>(table().extra_bytes, tensors.data(), static_cast<std::int64_t>(tensors.size()));
  }
};

}  // namespace mulligan
