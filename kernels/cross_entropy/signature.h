#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

// logits [T, V], V at least 1, and targets [T].
inline void check_logits(const sdk::CallChecks& call, std::uint32_t logits, std::uint32_t targets) {
  call.matrix(logits);
  call.require(call.dim(logits, 1) > 0, logits, "must have at least one column");
  call.i32(targets, {call.dim(logits, 0)});
}

struct CrossEntropyForward {
  static constexpr const char* name = "cross_entropy_fwd";
  static constexpr const char* signature = "in logits, in targets, out token_loss, out lse";
  enum Argument : std::uint32_t { logits, targets, token_loss, lse };
  static void check(const sdk::CallChecks& call) {
    check_logits(call, logits, targets);
    for (const std::uint32_t argument : {token_loss, lse}) call.f32(argument, {call.dim(logits, 0)});
  }
};

struct CrossEntropyBackward {
  static constexpr const char* name = "cross_entropy_bwd";
  static constexpr const char* signature = "in logits, in targets, in lse, in upstream, out dlogits";
  enum Argument : std::uint32_t { logits, targets, lse, upstream, dlogits };
  static void check(const sdk::CallChecks& call) {
    check_logits(call, logits, targets);
    for (const std::uint32_t argument : {lse, upstream}) call.f32(argument, {call.dim(logits, 0)});
    call.like(dlogits, logits);
  }
};

}  // namespace mulligan::shapes
