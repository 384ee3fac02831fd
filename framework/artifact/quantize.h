// Weights to the formats of an artifact and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/artifact/artifact_model.h"
#include "framework/artifact/quantized_tensor.h"
#include "framework/config/quantize_config.h"

namespace mulligan {

// For each part the row of the table that takes it: the first whose pattern matches. Throws config_error for
// a part without a row, a row that takes no part, and the format int for a tensor of one dimension or none.
std::vector<const QuantizeTensorRow*> resolve_quantize_table(std::span<const ArtifactPart> parts,
                                                             std::span<const QuantizeTensorRow> rows);

// int8 per row: q = round(clamp(w, -c, c) / a * 127), c the quantile of its magnitudes (QuantizeTensorRow; 1: the largest),
// a = max(c, least_range, 1e-8), scale = fp16(a / 127); ties to even.
QuantizedTensor quantize_int8_rows(std::string name, std::vector<std::int64_t> shape,
                                   std::span<const float> weights, double clip_quantile = 1,
                                   double least_range = 0);
// fp16, bf16 (nearest, ties to even) or fp32. A finite weight beyond fp16's range is a run_error.
QuantizedTensor store_as(TensorFormat format, std::string name, std::vector<std::int64_t> shape,
                         std::span<const float> weights);
}  // namespace mulligan
