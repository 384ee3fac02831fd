#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct SiluGateForward {
  static constexpr const char* name = "silu_gate_fwd";
  static constexpr const char* signature = "in g, in u, out y";
  enum Argument : std::uint32_t { g, u, y };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(g);
    call.like(u, g);
    call.like(y, g);
  }
};

struct SiluGateBackward {
  static constexpr const char* name = "silu_gate_bwd";
  static constexpr const char* signature =
      "in g, in u, in dy, inout? dg, inout? du; accumulate_dg accumulate_du";
  enum Argument : std::uint32_t { g, u, dy, dg, du };
  enum Attribute : std::uint32_t { accumulate_dg, accumulate_du };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(g);
    for (const std::uint32_t argument : {u, dy, dg, du}) call.like(argument, g);
  }
};

}  // namespace mulligan::shapes
