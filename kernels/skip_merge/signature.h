#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct SkipMergeForward {
  static constexpr const char* name = "skip_merge_fwd";
  static constexpr const char* signature = "in x, in s, in weight, in? gate, out y";
  enum Argument : std::uint32_t { x, s, weight, gate, y };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    call.like(s, x);
    for (const std::uint32_t argument : {weight, gate}) call.f32(argument, {call.dim(x, 1)});
    call.like(y, x);
  }
};

struct SkipMergeBackward {
  static constexpr const char* name = "skip_merge_bwd";
  static constexpr const char* signature =
      "in x, in s, in weight, in? gate, in dy, inout? dx, inout? ds, inout? dweight, inout? dgate; "
      "accumulate_dx accumulate_ds";
  enum Argument : std::uint32_t { x, s, weight, gate, dy, dx, ds, dweight, dgate };
  enum Attribute : std::uint32_t { accumulate_dx, accumulate_ds };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    for (const std::uint32_t argument : {s, dy, dx, ds}) call.like(argument, x);
    for (const std::uint32_t argument : {weight, gate, dweight, dgate}) call.f32(argument, {call.dim(x, 1)});
    call.require(call.has(gate), dgate, "must be absent where gate is absent");
  }
};

}  // namespace mulligan::shapes
