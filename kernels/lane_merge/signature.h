#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct LaneMerge {
  enum Argument : std::uint32_t { lane0, lane1, a, m, attn_scale, mlp_scale, rho, post };
  static void check_inputs(const sdk::CallChecks& call) {
    call.matrix(lane0);
    for (const std::uint32_t argument : {lane1, a, m}) call.like(argument, lane0);
    for (const std::uint32_t argument : {attn_scale, mlp_scale, rho, post}) call.dtype(argument, {MLG_F32});
    call.shape(attn_scale, {call.dim(lane0, 1)});
    call.shape(mlp_scale, {call.dim(lane0, 1)});
    call.shape(rho, {2});
    call.shape(post, {2, 2});
  }
  // Shape: of the backward pass.
  template <typename Shape>
  static void check_gradients(const sdk::CallChecks& call) {
    for (const std::uint32_t argument : {Shape::dlane0, Shape::dlane1, Shape::da, Shape::dm})
      call.like(argument, lane0);
    call.like(Shape::dattn_scale, attn_scale);
    call.like(Shape::dmlp_scale, mlp_scale);
    call.like(Shape::drho, rho);
    call.like(Shape::dpost, post);
  }
};

// The gradients of LaneMerge's arguments, from argument `first` on, and their flags, from attribute `flag` on.
template <std::uint32_t first, std::uint32_t flag>
struct LaneGradients {
  enum Gradient : std::uint32_t { dlane0 = first, dlane1, da, dm, dattn_scale, dmlp_scale, drho, dpost };
  enum Flag : std::uint32_t { accumulate_dlane0 = flag, accumulate_dlane1, accumulate_da, accumulate_dm };
};

struct LaneMergeForward : LaneMerge {
  static constexpr const char* name = "lane_merge_fwd";
  static constexpr const char* signature =
      "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, out out0, out out1";
  enum Output : std::uint32_t { out0 = 8, out1 };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(out0, lane0);
    call.like(out1, lane0);
  }
};

struct LaneMergeBackward : LaneMerge, LaneGradients<10, 0> {
  static constexpr const char* name = "lane_merge_bwd";
  static constexpr const char* signature =
      "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, in? dout0, in? dout1, "
      "inout? dlane0, inout? dlane1, inout? da, inout? dm, inout? dattn_scale, inout? dmlp_scale, inout? "
      "drho, inout? dpost; accumulate_dlane0 accumulate_dlane1 accumulate_da accumulate_dm";
  enum Upstream : std::uint32_t { dout0 = 8, dout1 };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    check_gradients<LaneMergeBackward>(call);
    for (const std::uint32_t argument : {dout0, dout1}) call.like(argument, lane0);
  }
};

}  // namespace mulligan::shapes
