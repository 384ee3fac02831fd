#pragma once

#include "kernels/qk_norm_rope/signature_rotary.h"

namespace mulligan::shapes {

struct QkNormRope : Rotary {
  enum Argument : std::uint32_t { x };
  static void check_inputs(const sdk::CallChecks& call) {
    call.compute_dtype(x);
    call.rank(x, 3, 3);
    check_rotation(call, call.dim(x, 2), call.dim(x, 1));
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
    call.f32(dgain, {call.dim(x, 1)});
  }
};

}  // namespace mulligan::shapes
