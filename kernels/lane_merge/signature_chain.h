#pragma once

#include "kernels/lane_merge/signature.h"

namespace mulligan::shapes {

// The arguments of LaneMerge come first.
struct LaneChain : LaneMerge {
  enum Next : std::uint32_t { skip = 8, weight, gate, x0, mix };
  static constexpr bool mixes = true;  // y0 is made with x0 and mix, not the mean of the lanes
  static void check_next(const sdk::CallChecks& call) {
    check_inputs(call);
    for (const std::uint32_t argument : {skip, x0}) call.like(argument, lane0);
    for (const std::uint32_t argument : {weight, gate, mix}) call.dtype(argument, {MLG_F32});
    for (const std::uint32_t argument : {weight, gate}) call.shape(argument, {call.dim(lane0, 1)});
    call.shape(mix, {2, call.dim(lane0, 1)});
  }
};

struct LaneChainForward : LaneChain {
  static constexpr const char* name = "lane_chain_fwd";
  static constexpr const char* signature =
      "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, in? skip, in? weight, "
      "in? gate, in x0, in mix, out merged, out out1, out n0, out n1; scale eps";
  enum Output : std::uint32_t { merged = 13, out1, n0, n1 };
  enum Attribute : std::uint32_t { scale, eps };
  static void check(const sdk::CallChecks& call) {
    check_next(call);
    for (const std::uint32_t argument : {merged, out1, n0, n1}) call.like(argument, lane0);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct LaneChainBackward : LaneChain, LaneGradients<17, 2> {
  static constexpr const char* name = "lane_chain_bwd";
  static constexpr const char* signature =
      "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, in? skip, in? weight, "
      "in? gate, in x0, in mix, in? dmerged, in? dout1, in? dn0, in? dn1, inout? dlane0, inout? dlane1, "
      "inout? da, inout? dm, inout? dattn_scale, inout? dmlp_scale, inout? drho, inout? dpost, inout? dskip, "
      "inout? dweight, inout? dgate, inout? dx0, inout? dmix; scale eps accumulate_dlane0 accumulate_dlane1 "
      "accumulate_da accumulate_dm accumulate_dskip accumulate_dx0";
  enum Upstream : std::uint32_t { dmerged = 13, dout1, dn0, dn1 };
  enum NextGradient : std::uint32_t { dskip = 25, dweight, dgate, dx0, dmix };
  enum Attribute : std::uint32_t { scale, eps, accumulate_dskip = 6, accumulate_dx0 };
  static void check(const sdk::CallChecks& call) {
    check_next(call);
    check_gradients<LaneChainBackward>(call);
    for (const std::uint32_t argument : {dmerged, dout1, dn0, dn1}) call.like(argument, lane0);
    call.like(dx0, lane0);
    call.require(call.has(skip), dskip, "must be absent where skip is absent");
    call.like(dskip, lane0);
    for (const std::uint32_t argument : {dweight, dgate}) call.f32(argument, {call.dim(lane0, 1)});
    call.like(dmix, mix);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct LaneMeanNormForward : LaneMerge {
  static constexpr const char* name = "lane_mean_norm_fwd";
  static constexpr const char* signature =
      "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, out n; scale eps";
  static constexpr bool mixes = false;
  enum Output : std::uint32_t { n = 8 };
  enum Attribute : std::uint32_t { scale, eps };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(n, lane0);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

struct LaneMeanNormBackward : LaneMerge, LaneGradients<9, 2> {
  static constexpr const char* name = "lane_mean_norm_bwd";
  static constexpr const char* signature =
      "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, in dn, inout? "
      "dlane0, inout? dlane1, inout? da, inout? dm, inout? dattn_scale, inout? dmlp_scale, inout? "
      "drho, inout? dpost; scale eps accumulate_dlane0 accumulate_dlane1 accumulate_da accumulate_dm";
  static constexpr bool mixes = false;
  enum Upstream : std::uint32_t { dn = 8 };
  enum Attribute : std::uint32_t { scale, eps };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    check_gradients<LaneMeanNormBackward>(call);
    call.like(dn, lane0);
    call.attribute_range(eps, 0.0, 1.0);
  }
};

}  // namespace mulligan::shapes
