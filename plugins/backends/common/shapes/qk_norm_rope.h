// What every backend's qk_norm_rope demands of its arguments (docs/kernels.md).
#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct QkNormRope {
  enum Argument : std::uint32_t { x, cos, sin, gain };
  enum Attribute : std::uint32_t { rope_dims, row_length, norm, eps };
  static constexpr std::int64_t max_head_width = 1024;
  static void check_inputs(const sdk::CallChecks& call) {
    call.compute_dtype(x);
    call.rank(x, 3, 3);
    const std::int64_t heads = call.dim(x, 1), head_width = call.dim(x, 2);
    call.require(head_width <= max_head_width, x, "must have heads of at most 1024 elements");
    call.dtype(cos, {MLG_F32});
    call.like(sin, cos);
    call.attribute_range(rope_dims, 0, static_cast<double>(head_width));
    call.attribute_range(eps, 0.0, 1.0);
    const auto rotated = static_cast<std::int64_t>(call.attribute(rope_dims));
    if (rotated > 0) {
      call.require(rotated % 2 == 0, x, "needs an even attribute rope_dims");
      call.shape(cos, {-1, rotated / 2});
      call.attribute_range(row_length, 1, static_cast<double>(call.dim(cos, 0)));
    }
    call.dtype(gain, {MLG_F32});
    call.shape(gain, {heads});
  }
};

struct QkNormRopeForward : QkNormRope {
  static constexpr const char* name = "qk_norm_rope_fwd";
  static constexpr const char* signature =
      "in x, in cos, in sin, in? gain, out y; rope_dims row_length norm eps";
  enum Output : std::uint32_t { y = 4 };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(y, x);
  }
};

struct QkNormRopeBackward : QkNormRope {
  static constexpr const char* name = "qk_norm_rope_bwd";
  static constexpr const char* signature =
      "in x, in cos, in sin, in? gain, in dy, inout dx, inout? dgain; "
      "rope_dims row_length norm eps accumulate_dx";
  enum Gradient : std::uint32_t { dy = 4, dx, dgain };
  static constexpr std::uint32_t accumulate_dx = 4;
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(dy, x);
    call.like(dx, x);
    call.dtype(dgain, {MLG_F32});
    call.shape(dgain, {call.dim(x, 1)});
  }
};

}  // namespace mulligan::shapes
