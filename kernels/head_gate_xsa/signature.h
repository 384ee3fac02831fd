#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct HeadGateXsa {
  enum Argument : std::uint32_t { o, v, gate };
  static constexpr std::int64_t max_head_width = 1024;
  static void check_inputs(const sdk::CallChecks& call) {
    call.compute_dtype(o);
    call.rank(o, 3, 3);
    call.require(call.dim(o, 2) <= max_head_width, o, "must have heads of at most 1024 elements");
    call.same_dtype(v, o);
    call.shape(v, {call.dim(o, 0), -1, call.dim(o, 2)});
    call.require(call.dim(v, 1) > 0 && call.dim(o, 1) % call.dim(v, 1) == 0, v,
                 "must have a number of heads that divides o's");
    call.same_dtype(gate, o);
    call.shape(gate, {call.dim(o, 0), call.dim(o, 1)});
  }
};

struct HeadGateXsaForward : HeadGateXsa {
  static constexpr const char* name = "head_gate_xsa_fwd";
  static constexpr const char* signature = "in o, in? v, in? gate, out y; gate_scale";
  enum Output : std::uint32_t { y = 3 };
  enum Attribute : std::uint32_t { gate_scale };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.attribute_range(gate_scale, -1e6, 1e6);
    call.like(y, o);
  }
};

struct HeadGateXsaBackward : HeadGateXsa {
  static constexpr const char* name = "head_gate_xsa_bwd";
  static constexpr const char* signature =
      "in o, in? v, in? gate, in dy, inout do, inout? dv, inout? dgate; "
      "gate_scale accumulate_do accumulate_dv accumulate_dgate";
  enum Gradient : std::uint32_t { dy = 3, d_o, dv, dgate };
  enum Attribute : std::uint32_t { gate_scale, accumulate_do, accumulate_dv, accumulate_dgate };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.attribute_range(gate_scale, -1e6, 1e6);
    call.like(dy, o);
    call.like(d_o, o);
    call.require(call.has(v), dv, "must be absent where v is absent");
    call.like(dv, v);
    call.require(call.has(gate), dgate, "must be absent where gate is absent");
    call.like(dgate, gate);
  }
};

}  // namespace mulligan::shapes
