#include "framework/core/tensor_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mulligan {

std::int64_t dtype_size(DType dtype) {
  switch (dtype) {
    case MLG_F32:
    case MLG_I32:
      return 4;
    case MLG_BF16:
    case MLG_F16:
    case MLG_U16:
      return 2;
    case MLG_F64:
    case MLG_I64:
      return 8;
    case MLG_U8:
    case MLG_I8:
      return 1;
    case MLG_ABSENT:
      break;
  }
  throw std::logic_error("dtype_size: not a dtype of a tensor");
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case MLG_F32:
      return "f32";
    case MLG_BF16:
      return "bf16";
    case MLG_F16:
      return "f16";
    case MLG_F64:
      return "f64";
    case MLG_I32:
      return "i32";
    case MLG_I64:
      return "i64";
    case MLG_U16:
      return "u16";
    case MLG_U8:
      return "u8";
    case MLG_I8:
      return "i8";
    case MLG_ABSENT:
      break;
  }
  return "absent";
}

TensorType::TensorType(DType type, std::initializer_list<std::int64_t> shape)
    : dtype(type), rank(static_cast<int>(shape.size())) {
  if (shape.size() > dims.size()) throw std::logic_error("TensorType: at most four dimensions");
  std::copy(shape.begin(), shape.end(), dims.begin());
}

TensorType TensorType::as(DType other) const {
  TensorType result = *this;
  result.dtype = other;
  return result;
}

std::string TensorType::text() const {
  std::string shape;
  for (int axis = 0; axis < rank; ++axis) shape += fmt::format("{}{}", axis ? ", " : "", dims[axis]);
  return fmt::format("{}[{}]", dtype_name(dtype), shape);
}

mlg_tensor TensorType::to_c() const {
  return {nullptr, dtype, rank, {dims[0], dims[1], dims[2], dims[3]}};
}

TensorType TensorType::from_c(const mlg_tensor& tensor) {
  TensorType result;
  result.dtype = static_cast<DType>(tensor.dtype);
  result.rank = tensor.rank;
  std::copy(std::begin(tensor.shape), std::end(tensor.shape), result.dims.begin());
  return result;
}

}  // namespace mulligan
