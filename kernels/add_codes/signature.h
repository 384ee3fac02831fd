#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct AddCodes {
  static constexpr const char* name = "add_codes";
  static constexpr const char* signature = "in codes, in grid, inout values; bits";
  enum Argument : std::uint32_t { codes, grid, values };
  enum Attribute : std::uint32_t { bits };
  static void check(const sdk::CallChecks& call) {
    call.dtype(codes, {MLG_U8});
    call.dtype(grid, {MLG_F64});
    call.shape(grid, {2});
    call.dtype(values, {MLG_F32});
    call.attribute_range(bits, 2, 8);
    const auto width = static_cast<std::int64_t>(call.attribute(bits));
    if (static_cast<double>(width) != call.attribute(bits)) {
      throw std::runtime_error("kernel add_codes: attribute bits must be a whole number");
    }
    call.shape(codes, {(call.size(values) * width + 7) / 8});
  }
};

}  // namespace mulligan::shapes
