// A tensor as an artifact holds it, and the weights that it stands for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/stored_formats.h"

namespace mulligan {

// Columns of an int tensor with a finer scale of their own: `size` columns from each start.
struct ProtectedColumns {
  std::vector<std::int64_t> starts = {};  // ascending, groups apart
  std::int64_t size = 0;
  int bits = 0;
  std::vector<std::int8_t> codes = {};     // [rows, starts x size]
  std::vector<std::uint16_t> scales = {};  // fp16 bits, one per row

  std::int64_t columns() const { return static_cast<std::int64_t>(starts.size()) * size; }
  // Of each of `columns` columns, whether it is one of these.
  std::vector<bool> mask(std::int64_t columns) const;
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
  // The order in which a file holds the rows of the codes; empty: as they are. Only while a file is written
  // or read.
  std::vector<std::uint16_t> row_order = {};

  std::int64_t elements() const;
  std::int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  bool operator==(const QuantizedTensor&) const = default;
};

// The weights that an evaluation works with, in f32: code * scale and the correction, or the stored value.
std::vector<float> dequantize(const QuantizedTensor& tensor);

}  // namespace mulligan
