#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct RmsNormForward {
  static constexpr const char* name = "rms_norm_fwd";
  static constexpr const char* signature = "in x, out y; scale eps";
  enum Argument : std::uint32_t { x, y };
  enum Attribute : std::uint32_t { scale, eps };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(x);
    call.rank(x, 1, 4);
    call.like(y, x);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct RmsNormBackward {
  static constexpr const char* name = "rms_norm_bwd";
  static constexpr const char* signature = "in x, in dy, inout dx; scale eps accumulate_dx";
  enum Argument : std::uint32_t { x, dy, dx };
  enum Attribute : std::uint32_t { scale, eps, accumulate_dx };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(x);
    call.rank(x, 1, 4);
    call.like(dy, x);
    call.like(dx, x);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

}  // namespace mulligan::shapes
