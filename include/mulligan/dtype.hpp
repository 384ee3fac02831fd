// Sizes and names of the dtypes of tensor.h.
#pragma once

#include <mulligan/tensor.h>

#include <cstddef>
#include <cstdint>

namespace mulligan::sdk {

struct DtypeFacts {
  const char* name;
  std::size_t bytes;  // of an element
};

// For MLG_ABSENT and invalid dtypes: "absent", 0 bytes.
constexpr DtypeFacts dtype_facts(std::int32_t dtype) {
  switch (dtype) {
    case MLG_F32:
      return {"f32", 4};
    case MLG_BF16:
      return {"bf16", 2};
    case MLG_F16:
      return {"f16", 2};
    case MLG_F64:
      return {"f64", 8};
    case MLG_I32:
      return {"i32", 4};
    case MLG_I64:
      return {"i64", 8};
    case MLG_U16:
      return {"u16", 2};
    case MLG_U8:
      return {"u8", 1};
    case MLG_I8:
      return {"i8", 1};
    default:
      return {"absent", 0};
  }
}
constexpr std::size_t dtype_bytes(std::int32_t dtype) {
  return dtype_facts(dtype).bytes;
}
constexpr const char* dtype_name(std::int32_t dtype) {
  return dtype_facts(dtype).name;
}

}  // namespace mulligan::sdk
