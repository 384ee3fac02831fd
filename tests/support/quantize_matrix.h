// One matrix through a quantiser plugin.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/plugin/quantizer.h"

namespace mulligan {

struct QuantizedMatrix {
  std::vector<std::int8_t> codes;
  std::vector<float> scales, fine_scales;
  double squared_error = 0;
};

// What the plugin makes of the request. Without parallel_for all is one piece.
inline QuantizedMatrix quantize_matrix(const Quantizer& quantizer, mlg_quantize_request request) {
  if (!request.parallel_for) {
    request.parallel_for = [](std::int64_t count, std::int64_t,
                              void (*body)(void*, std::int64_t, std::int64_t),
                              void* context) { body(context, 0, count); };
  }
  const auto rows = static_cast<std::size_t>(request.rows);
  QuantizedMatrix made{std::vector<std::int8_t>(rows * static_cast<std::size_t>(request.columns)),
                       std::vector<float>(rows), std::vector<float>(request.protected_count > 0 ? rows : 0)};
  mlg_quantize_result result{made.codes.data(), made.scales.data(), 0, made.fine_scales.data()};
  quantizer.quantize(request, result);
  made.squared_error = result.squared_error;
  return made;
}

}  // namespace mulligan
