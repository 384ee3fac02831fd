// How large an artifact will be, from shapes and formats alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/artifact/tensor_map.h"
#include "framework/config/quantize_config.h"

namespace mulligan {

// Entropy in bits of a standard normal number divided by `step`, rounded to the nearest integer and clamped
// to [-qmax, qmax]: what a code costs when a row is normal and its scale is `step` standard deviations.
double normal_code_entropy(double step, int qmax);

// Predicted bytes of each part under the rules of the table, in order: entropy of the codes of normal rows, 2
// bytes for each fp16 number (scales included), times the little that the compressor misses of the entropy
// (measured on normal codes: 1.5 %, the adaptive coder 0.1 %). Trained rows are not quite normal and their
// scales alike, so the real size differs by some percent; quantising shows it.
std::vector<double> predict_sizes(std::span<const ArtifactPart> parts,
                                  std::span<const QuantizeTensorRow> rows,
                                  Compression compression = Compression::brotli);

}  // namespace mulligan
