#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct SmearGate {
  enum Argument : std::uint32_t { x, tokens, weight, lambda };
  enum Attribute : std::uint32_t { row_length, document_start };
  static void check_inputs(const sdk::CallChecks& call) {
    call.matrix(x);
    call.i32(tokens, {call.dim(x, 0)});
    call.same_dtype(weight, x);
    call.shape(weight, {1, -1});
    call.require(call.dim(weight, 1) <= call.dim(x, 1), weight, "must have at most as many columns as x");
    call.f32(lambda, {1});
    call.attribute_range(row_length, 1.0, 1e9);
    call.attribute_range(document_start, -1.0, 1e9);
  }
};

struct SmearGateForward : SmearGate {
  static constexpr const char* name = "smear_gate_fwd";
  static constexpr const char* signature =
      "in x, in tokens, in weight, in lambda, out y; row_length document_start";
  enum Output : std::uint32_t { y = 4 };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(y, x);
  }
};

struct SmearGateBackward : SmearGate {
  static constexpr const char* name = "smear_gate_bwd";
  static constexpr const char* signature =
      "in x, in tokens, in weight, in lambda, in dy, inout? dx, inout? dweight, inout? dlambda; "
      "row_length document_start accumulate_dx";
  enum Gradient : std::uint32_t { dy = 4, dx, dweight, dlambda };
  static constexpr std::uint32_t accumulate_dx = 2;
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(dy, x);
    call.like(dx, x);
    call.f32(dweight, {1, call.dim(weight, 1)});
    call.f32(dlambda, {1});
  }
};

}  // namespace mulligan::shapes
