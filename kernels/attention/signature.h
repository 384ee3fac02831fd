#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct Attention {
  enum Argument : std::uint32_t { q, k, v, cu_seqlens };
  enum Attribute : std::uint32_t { softmax_scale };
  static void check_inputs(const sdk::CallChecks& call) {
    call.compute_dtype(q);
    call.rank(q, 3, 3);
    call.min_elements(q, 1);
    call.rank(k, 3, 3);
    call.same_dtype(k, q);
    call.min_elements(k, 1);
    call.shape(k, {call.dim(q, 0), -1, call.dim(q, 2)});
    call.require(call.dim(q, 1) % call.dim(k, 1) == 0, k, "must have a number of heads that divides q's");
    call.like(v, k);
    call.i32(cu_seqlens, {-1});
    call.min_elements(cu_seqlens, 2);
    call.attribute_range(softmax_scale, 1e-30, 1e30);
  }
};

struct AttentionForward : Attention {
  static constexpr const char* name = "attention_fwd";
  static constexpr const char* signature = "in q, in k, in v, in cu_seqlens, out o, out lse; softmax_scale";
  enum Output : std::uint32_t { o = 4, lse };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(o, q);
    call.f32(lse, {call.dim(q, 0), call.dim(q, 1)});
  }
};

// attention_fwd of every query over all keys of its segment, also later ones.
struct AttentionBidirectionalForward : AttentionForward {
  static constexpr const char* name = "attention_bidirectional_fwd";
};

// attention_fwd with other maxima in its online softmax, and the sums that a low-precision kernel rounds.
struct AttentionStableForward : Attention {
  static constexpr const char* name = "attention_stable_fwd";
  static constexpr const char* signature =
      "in q, in k, in v, in cu_seqlens, out o, out lse; softmax_scale beta tolerance min_repeats cap "
      "round_normalizer round_sums";
  enum Output : std::uint32_t { o = 4, lse };
  enum Rule : std::uint32_t { beta = 1, tolerance, min_repeats, cap, round_normalizer, round_sums };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.require(call.dtype(q) != MLG_F16, q,
                 "must be f32 or bf16: weights shifted by up to cap do not fit f16's exponents");
    call.like(o, q);
    call.f32(lse, {call.dim(q, 0), call.dim(q, 1)});
    call.attribute_range(beta, 1, 64);
    call.attribute_range(tolerance, 0, 1);
    call.attribute_range(min_repeats, 0, 1 << 20);
    call.attribute_range(cap, 0.1, 60);
    call.attribute_range(round_normalizer, 0, 1);
    call.attribute_range(round_sums, 0, 1);
  }
};

struct AttentionBackward : Attention {
  static constexpr const char* name = "attention_bwd";
  static constexpr const char* signature =
      "in q, in k, in v, in cu_seqlens, in o, in lse, in do, inout dq, inout dk, inout dv; softmax_scale "
      "accumulate_dq accumulate_dk accumulate_dv";
  enum Gradient : std::uint32_t { o = 4, lse, d_o, dq, dk, dv };
  enum Accumulate : std::uint32_t { accumulate_dq = 1, accumulate_dk, accumulate_dv };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    for (const std::uint32_t argument : {o, d_o, dq}) call.like(argument, q);
    for (const std::uint32_t argument : {dk, dv}) call.like(argument, k);
    call.f32(lse, {call.dim(q, 0), call.dim(q, 1)});
  }
};

struct AttentionBidirectionalBackward : AttentionBackward {
  static constexpr const char* name = "attention_bidirectional_bwd";
};

}  // namespace mulligan::shapes
