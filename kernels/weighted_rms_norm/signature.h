#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct WeightedRmsNormForward {
  static constexpr const char* name = "weighted_rms_norm_fwd";
  static constexpr const char* signature = "in x, in weight, out y; eps";
  enum Argument : std::uint32_t { x, weight, y };
  enum Attribute : std::uint32_t { eps };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    call.f32(weight, {call.dim(x, 1)});
    call.like(y, x);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct WeightedRmsNormBackward {
  static constexpr const char* name = "weighted_rms_norm_bwd";
  static constexpr const char* signature =
      "in x, in weight, in dy, inout? dx, inout? dweight; eps accumulate_dx";
  enum Argument : std::uint32_t { x, weight, dy, dx, dweight };
  enum Attribute : std::uint32_t { eps, accumulate_dx };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    for (const std::uint32_t argument : {weight, dweight}) call.f32(argument, {call.dim(x, 1)});
    call.like(dy, x);
    call.like(dx, x);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

}  // namespace mulligan::shapes
