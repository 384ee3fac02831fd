#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct ResidualChain {
  enum Argument : std::uint32_t { x, a, s, skip, weight, gate, x0, mix };
  static void check_inputs(const sdk::CallChecks& call) {
    call.matrix(x);
    for (const std::uint32_t argument : {a, skip, x0}) call.like(argument, x);
    for (const std::uint32_t argument : {s, weight, gate, mix}) call.dtype(argument, {MLG_F32});
    for (const std::uint32_t argument : {s, weight, gate}) call.shape(argument, {call.dim(x, 1)});
    call.shape(mix, {2, call.dim(x, 1)});
  }
};

struct ResidualChainForward : ResidualChain {
  static constexpr const char* name = "residual_chain_fwd";
  static constexpr const char* signature =
      "in x, in a, in? s, in? skip, in? weight, in? gate, in x0, in mix, out? sum, out? merged, out? y, "
      "out n; scale eps";
  enum Output : std::uint32_t { sum = 8, merged, y, n };
  enum Attribute : std::uint32_t { scale, eps };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    for (const std::uint32_t argument : {sum, merged, y, n}) call.like(argument, x);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct ResidualChainBackward : ResidualChain {
  static constexpr const char* name = "residual_chain_bwd";
  static constexpr const char* signature =
      "in x, in a, in? s, in? skip, in? weight, in? gate, in x0, in mix, in? dsum, in? dmerged, in? dy, "
      "in? dn, inout? dx, inout? da, inout? ds, inout? dskip, inout? dweight, inout? dgate, inout? dx0, "
      "inout? dmix; scale eps accumulate_dx accumulate_da accumulate_dskip accumulate_dx0";
  enum Gradient : std::uint32_t { dsum = 8, dmerged, dy, dn, dx, da, ds, dskip, dweight, dgate, dx0, dmix };
  enum Attribute : std::uint32_t {
    scale,
    eps,
    accumulate_dx,
    accumulate_da,
    accumulate_dskip,
    accumulate_dx0
  };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    for (const std::uint32_t argument : {dsum, dmerged, dy, dn, dx, da, dskip, dx0}) call.like(argument, x);
    call.require(call.has(s), ds, "must be absent where s is absent");
    call.like(ds, s);
    for (const std::uint32_t argument : {dweight, dgate}) call.f32(argument, {call.dim(x, 1)});
    call.like(dmix, mix);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

}  // namespace mulligan::shapes
