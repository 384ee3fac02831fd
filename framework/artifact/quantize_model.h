// Weights to the formats of an artifact: a tensor, and all tensors of a model.
#pragma once

#include <mulligan/quantizer.h>
#include <cstdint>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/artifact/calibrate.h"
#include "framework/config/quantize_config.h"

namespace mulligan {

class Quantizer;

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

// What quantising needs from outside.
struct QuantizeSources {
  // f32 elements of a whole parameter, masters or averaged weights.
  std::function<std::vector<float>(const std::string& parameter)> weights;
  // May be empty when the quantiser needs no second moments.
  std::function<InputMoments(const TapPoint&)> moments;
  const Quantizer* quantizer = nullptr;
  int threads = 0;  // 0: all cores
  // Called with the elements of each part that is done; may be empty.
  std::function<void(std::int64_t elements)> quantized;
};

// Quantises every part of the model as the table says, in the order of artifact_parts. A quantiser that chooses over the whole
// model is asked before the first tensor which columns to protect, and after the last what to correct. Throws config_error for
// the table, run_error for weights that are not finite or a quantiser that fails or returns what an artifact cannot hold.
std::vector<QuantizedTensor> quantize_model(const ModelConfig& model, std::span<const QuantizeTensorRow> rows,
                                            const QuantizeSources& sources);

// The shapes of the parts that the table stores as int, without weights, as Quantizer::extra_bytes wants
// them. Names point into `parts`.
std::vector<mlg_quantize_tensor> integer_shapes(std::span<const ArtifactPart> parts,
                                                std::span<const QuantizeTensorRow* const> table);

// By tensor of the list: its protected columns without codes and scales. Throws run_error where the quantiser
// fails or chooses columns that are not there, overlap, or have a width that codes cannot have.
std::vector<ProtectedColumns> chosen_columns(const Quantizer& quantizer,
                                             std::span<const mlg_quantize_tensor> tensors);

}  // namespace mulligan
