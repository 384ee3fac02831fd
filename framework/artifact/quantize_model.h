// All tensors of a model from weights to the formats of an artifact.
#pragma once

#include <mulligan/quantizer.h>
#include <cstdint>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/artifact/quantize.h"

namespace mulligan {

class Quantizer;

// What quantising needs from outside.
struct QuantizeSources {
  // f32 elements of a whole parameter, masters or averaged weights.
  std::function<std::vector<float>(const std::string& parameter)> weights;
  // The second moments of a point's input; may be empty when the quantiser needs none.
  std::function<std::vector<float>(const TapPoint&)> hessian;
  // Root mean square of each column of a point's input; empty like hessian.
  std::function<std::vector<float>(const TapPoint&)> input_rms = {};
  const Quantizer* quantizer = nullptr;
  int threads = 0;  // 0: all cores
  // Called with the elements of each part that is done; may be empty.
  std::function<void(std::int64_t elements)> quantized;
};

// Quantises every part of the model as the table says, in the order of artifact_parts; a quantiser that chooses over the whole model is asked
// before the first tensor which columns to protect, and after the last what to correct. Throws config_error
// for the table, run_error for weights that are not finite or a quantiser that fails or returns what an
// artifact cannot hold.
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
