#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct UniformDraws {
  static constexpr const char* name = "uniform_draws";
  static constexpr const char* signature = "in key, out values; bound";
  enum Argument : std::uint32_t { key, values };
  enum Attribute : std::uint32_t { bound };
  static void check(const sdk::CallChecks& call) {
    call.i32(key, {4});
    call.dtype(values, {MLG_F32});
    if (call.flag(bound)) call.attribute_range(bound, 1e-20, 1e6);
  }
};

}  // namespace mulligan::shapes
