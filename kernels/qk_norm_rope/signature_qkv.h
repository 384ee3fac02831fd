#pragma once

#include "kernels/qk_norm_rope/signature_rotary.h"

namespace mulligan::shapes {

// A row of `packed` [T, W]: H query heads, K key heads and K value heads of h elements, H gates, padding.
struct QkvSplitNormRope : Rotary {
  enum Argument : std::uint32_t { packed };

  // `q`, `k` and `v`: the arguments of these shapes; `gate` may be absent.
  static void check_heads(const sdk::CallChecks& call, std::uint32_t q, std::uint32_t k, std::uint32_t v,
                          std::uint32_t gate) {
    call.matrix(packed);
    call.rank(q, 3, 3);
    call.same_dtype(q, packed);
    call.require(call.dim(q, 0) == call.dim(packed, 0), q, "must have as many rows as packed");
    call.same_dtype(k, packed);
    call.shape(k, {call.dim(q, 0), -1, call.dim(q, 2)});
    call.like(v, k);
    call.same_dtype(gate, packed);
    call.shape(gate, {call.dim(q, 0), call.dim(q, 1)});
    const std::int64_t heads = (call.dim(q, 1) + 2 * call.dim(k, 1)) * call.dim(q, 2);
    call.require(call.dim(packed, 1) >= heads + (call.has(gate) ? call.dim(q, 1) : 0), packed,
                 "must have rows that hold all heads and gates");
    check_rotation(call, call.dim(q, 2), call.dim(q, 1));
  }
};

struct QkvSplitNormRopeForward : QkvSplitNormRope {
  static constexpr const char* name = "qkv_split_norm_rope_fwd";
  static constexpr const char* signature =
      "in packed, in cos, in sin, in? gain, out q, out k, out v, out? gate; rope_dims row_length norm eps";
  enum Output : std::uint32_t { q = 4, k, v, gate };
  static void check(const sdk::CallChecks& call) { check_heads(call, q, k, v, gate); }
};

struct QkvSplitNormRopeBackward : QkvSplitNormRope {
  static constexpr const char* name = "qkv_split_norm_rope_bwd";
  static constexpr const char* signature =
      "in packed, in cos, in sin, in? gain, in dq, in dk, in dv, in? dv_xsa, in? dgate, inout dpacked, "
      "inout? dgain; rope_dims row_length norm eps accumulate_dpacked";
  enum Gradient : std::uint32_t { dq = 4, dk, dv, dv_xsa, dgate, dpacked, dgain };
  static constexpr std::uint32_t accumulate_dpacked = 4;
  static void check(const sdk::CallChecks& call) {
    check_heads(call, dq, dk, dv, dgate);
    call.like(dv_xsa, dv);
    call.like(dpacked, packed);
    call.f32(dgain, {call.dim(dq, 1)});
  }
};

}  // namespace mulligan::shapes
