#include "framework/core/tensor_type.h"

#include <fmt/format.h>
#include <mulligan/dtype.hpp>

#include <algorithm>
#include <stdexcept>

namespace mulligan {

std::int64_t dtype_size(DType dtype) {
  const std::size_t bytes = sdk::dtype_bytes(dtype);
  if (bytes == 0) throw std::logic_error("dtype_size: not a dtype of a tensor");
  return static_cast<std::int64_t>(bytes);
}

const char* dtype_name(DType dtype) {
  return sdk::dtype_name(dtype);
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
