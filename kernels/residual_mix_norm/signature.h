#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct ResidualMixNormForward {
  static constexpr const char* name = "residual_mix_norm_fwd";
  static constexpr const char* signature = "in x, in x0, in mix, out? y, out n; scale eps";
  enum Argument : std::uint32_t { x, x0, mix, y, n };
  enum Attribute : std::uint32_t { scale, eps };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    call.like(x0, x);
    call.f32(mix, {2, call.dim(x, 1)});
    call.like(y, x);
    call.like(n, x);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct ResidualMixNormBackward {
  static constexpr const char* name = "residual_mix_norm_bwd";
  static constexpr const char* signature =
      "in x, in x0, in mix, in? dy, in? dn, inout? dx, inout? dx0, inout? dmix; "
      "scale eps accumulate_dx accumulate_dx0";
  enum Argument : std::uint32_t { x, x0, mix, dy, dn, dx, dx0, dmix };
  enum Attribute : std::uint32_t { scale, eps, accumulate_dx, accumulate_dx0 };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    for (const std::uint32_t argument : {x0, dy, dn, dx, dx0}) call.like(argument, x);
    for (const std::uint32_t argument : {mix, dmix}) call.f32(argument, {2, call.dim(x, 1)});
    call.attribute_range(eps, 0.0, 1.0);
  }
};

}  // namespace mulligan::shapes
