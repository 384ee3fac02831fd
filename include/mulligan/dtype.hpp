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
  // In the order of mlg_dtype.
  constexpr DtypeFacts facts[] = {{"f32", 4}, {"bf16", 2}, {"f16", 2}, {"f64", 8}, {"i32", 4},
                                  {"i64", 8}, {"u16", 2},  {"u8", 1},  {"i8", 1}};
  static_assert(sizeof facts / sizeof *facts == MLG_I8 + 1);
  return dtype >= 0 && dtype <= MLG_I8 ? facts[dtype] : DtypeFacts{"absent", 0};
}
constexpr std::size_t dtype_bytes(std::int32_t dtype) {
  return dtype_facts(dtype).bytes;
}
constexpr const char* dtype_name(std::int32_t dtype) {
  return dtype_facts(dtype).name;
}

}  // namespace mulligan::sdk
