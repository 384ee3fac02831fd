// What every backend's axpby demands of its arguments (docs/kernels.md).
#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct Axpby {
  static constexpr const char* name = "axpby";
  static constexpr const char* signature = "in a, in? b, inout y; alpha beta accumulate_y";
  enum Argument : std::uint32_t { a, b, y };
  enum Attribute : std::uint32_t { alpha, beta, accumulate_y };
  static void check(const sdk::CallChecks& call) {
    for (const std::uint32_t argument : {a, b, y}) call.compute_dtype(argument);
    call.same_shape(b, a);
    call.same_shape(y, a);
  }
};

}  // namespace mulligan::shapes
