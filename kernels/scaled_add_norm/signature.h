#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct ScaledAddNormForward {
  static constexpr const char* name = "scaled_add_norm_fwd";
  static constexpr const char* signature = "in x, in a, in? s, out y, out? n; scale eps";
  enum Argument : std::uint32_t { x, a, s, y, n };
  enum Attribute : std::uint32_t { scale, eps };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    call.like(a, x);
    call.f32(s, {call.dim(x, 1)});
    call.like(y, x);
    call.like(n, x);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct ScaledAddNormBackward {
  static constexpr const char* name = "scaled_add_norm_bwd";
  static constexpr const char* signature =
      "in y, in? a, in? s, in? dy, in? dn, inout? dx, inout? da, inout? ds; "
      "scale eps accumulate_dx accumulate_da";
  enum Argument : std::uint32_t { y, a, s, dy, dn, dx, da, ds };
  enum Attribute : std::uint32_t { scale, eps, accumulate_dx, accumulate_da };
  static void check(const sdk::CallChecks& call) {
    call.matrix(y);
    for (const std::uint32_t argument : {a, dy, dn, dx, da}) call.like(argument, y);
    call.require(call.has(a), ds, "must be absent where a is absent");
    for (const std::uint32_t argument : {s, ds}) call.f32(argument, {call.dim(y, 1)});
    call.attribute_range(eps, 0.0, 1.0);
  }
};

}  // namespace mulligan::shapes
