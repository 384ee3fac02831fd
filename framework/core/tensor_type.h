// Shapes and dtypes of tensors: what a tensor is, without where it lives.
#pragma once

#include <mulligan/tensor.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace mulligan {

using DType = mlg_dtype;

// Bytes of one element. Throws std::logic_error for MLG_ABSENT.
std::int64_t dtype_size(DType dtype);
// "f32", "bf16", ... as used in logs and error sentences.
const char* dtype_name(DType dtype);

// A contiguous row-major tensor type of rank 0 to 4; dims beyond the rank are 1.
struct TensorType {
  DType dtype = MLG_F32;
  int rank = 0;
  std::array<std::int64_t, MLG_MAX_RANK> dims{1, 1, 1, 1};

  TensorType() = default;
  TensorType(DType dtype, std::initializer_list<std::int64_t> shape);

  std::int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  std::int64_t bytes() const { return elements() * dtype_size(dtype); }
  // The same shape with another dtype.
  TensorType as(DType other) const;
  // "bf16[4096, 512]"
  std::string text() const;
  // For the plugin boundary; the data pointer is null.
  mlg_tensor to_c() const;
  static TensorType from_c(const mlg_tensor& tensor);

  bool operator==(const TensorType&) const = default;
};

}  // namespace mulligan
