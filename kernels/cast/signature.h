#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct Cast {
  static constexpr const char* name = "cast";
  static constexpr const char* signature = "in x, out y";
  enum Argument : std::uint32_t { x, y };
  static void check(const sdk::CallChecks& call) {
    for (const std::uint32_t argument : {x, y}) call.dtype(argument, {MLG_F32, MLG_BF16, MLG_F16, MLG_F64});
    call.same_shape(y, x);
  }
};

}  // namespace mulligan::shapes
