// Quantizer: a quantiser made by a plugin; contracts of the calls in <mulligan/quantizer.h>.
#pragma once

#include <mulligan/quantizer.h>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Quantizer : public PluginInstance<mlg_quantizer_table> {
 public:
  using PluginInstance::PluginInstance;

  // Whether quantize() wants second moments of the layers' inputs.
  bool needs_hessian() const { return table().needs_hessian != 0; }

  // Fills result.codes, result.scales (memory of the caller) and result.squared_error.
  void quantize(const mlg_quantize_request& request, mlg_quantize_result& result) const {
    call("quantize", table().quantize, &request, &result);
  }
};

}  // namespace mulligan
