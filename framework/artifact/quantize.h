// Weights to the formats of an artifact and back.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/artifact/tensor_map.h"
#include "framework/config/quantize_config.h"

namespace mulligan {

class Quantizer;

// Columns of an int tensor with a finer scale of their own: `size` columns from each start.
struct ProtectedColumns {
  std::vector<std::int64_t> starts = {};  // ascending, groups apart
  std::int64_t size = 0;
  int bits = 0;
  std::vector<std::int8_t> codes = {};     // [rows, starts x size]
  std::vector<std::uint16_t> scales = {};  // fp16 bits, one per row

  std::int64_t columns() const { return static_cast<std::int64_t>(starts.size()) * size; }
  bool operator==(const ProtectedColumns&) const = default;
};

// A correction of low rank that is added to an int tensor: left [rows, rank] times right [rank, columns]. In
// row-major order each `group` codes have one scale, the last group what is left.
struct LowRankCorrection {
  std::int64_t rank = 0;  // 0: none
  std::int64_t left_group = 0, right_group = 0;
  std::vector<std::int8_t> left = {}, right = {};
  std::vector<std::uint16_t> left_scales = {}, right_scales = {};  // fp16 bits

  bool operator==(const LowRankCorrection&) const = default;
};

// One tensor as an artifact holds it. Rows are the tensor seen as [elements / last
// dimension, last dimension].
struct QuantizedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  TensorFormat format = TensorFormat::fp32;
  int bits = 0;                       // of a code; 0 for fp16, bf16, fp32
  std::vector<std::int8_t> codes;     // integer, int8_row: all elements but protected columns; else empty
  std::vector<std::uint16_t> scales;  // integer, int8_row: fp16 bits, one per row; else empty
  std::string values;                 // fp16, bf16, fp32: the elements as little-endian bytes; else empty
  ProtectedColumns protected_columns = {};  // integer only
  LowRankCorrection correction = {};        // integer only

  std::int64_t elements() const;
  std::int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  bool operator==(const QuantizedTensor&) const = default;
};

// "int", "int8_row", "fp16", "bf16", "fp32": the words of the configuration.
std::string_view format_word(TensorFormat format);

// For each part the row of the table that takes it: the first whose pattern matches. Throws config_error for
// a part without a row, a row that takes no part, and the format int for a tensor of one dimension or none.
std::vector<const QuantizeTensorRow*> resolve_quantize_table(std::span<const ArtifactPart> parts,
                                                             std::span<const QuantizeTensorRow> rows);

// int8 per row: q = clamp(round(w / a * 127)), a = max(absmax(row), 1e-8), scale = fp16(a / 127);
// ties to even.
QuantizedTensor quantize_int8_rows(std::string name, std::vector<std::int64_t> shape,
                                   std::span<const float> weights);
// fp16, bf16 (nearest, ties to even) or fp32. A finite weight beyond fp16's range is a run_error.
QuantizedTensor store_as(TensorFormat format, std::string name, std::vector<std::int64_t> shape,
                         std::span<const float> weights);
// The weights that an evaluation works with: code * scale, or the stored value, in f32.
std::vector<float> dequantize(const QuantizedTensor& tensor);

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

struct QuantizedModel {
  std::vector<QuantizedTensor> tensors;  // in the order of artifact_parts
  std::vector<double> squared_error;     // by tensor, as the plugin reports it; 0 for the host's formats
};

// Quantises every part of the model as the table says. Throws config_error for the table, run_error for
// weights that are not finite or a quantiser that fails or returns codes or scales out of range.
QuantizedModel quantize_model(const ModelConfig& model, std::span<const QuantizeTensorRow> rows,
                              const QuantizeSources& sources);

}  // namespace mulligan
