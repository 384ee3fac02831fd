// A tensor's bytes on the host, read as numbers.
#pragma once

#include <mulligan/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "framework/core/tensor_type.h"

namespace mulligan::first_contact {

struct HostTensor {
  TensorType type;
  const std::byte* bytes = nullptr;

  double operator[](std::int64_t index) const {
    switch (type.dtype) {
      case MLG_F32:
        return at<float>(index);
      case MLG_BF16:
        return static_cast<float>(at<sdk::bfloat16>(index));
      case MLG_F16:
        return static_cast<float>(at<sdk::float16>(index));
      case MLG_F64:
        return at<double>(index);
      case MLG_I32:
        return at<std::int32_t>(index);
      case MLG_I64:
        return static_cast<double>(at<std::int64_t>(index));
      case MLG_U16:
        return at<std::uint16_t>(index);
      case MLG_U8:
        return at<std::uint8_t>(index);
      case MLG_I8:
        return at<std::int8_t>(index);
      default:
        return 0;
    }
  }
  bool is_floating() const { return type.dtype >= MLG_F32 && type.dtype <= MLG_F64; }

 private:
  template <typename T>
  T at(std::int64_t index) const {
    T value;
    std::memcpy(&value, bytes + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
};

}  // namespace mulligan::first_contact
