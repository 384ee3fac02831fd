#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct LeakyReluSquaredForward {
  static constexpr const char* name = "leaky_relu_squared_fwd";
  static constexpr const char* signature = "in u, out y; slope";
  enum Argument : std::uint32_t { u, y };
  enum Attribute : std::uint32_t { slope };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(u);
    call.like(y, u);
  }
};

struct LeakyReluSquaredBackward {
  static constexpr const char* name = "leaky_relu_squared_bwd";
  static constexpr const char* signature = "in u, in dy, inout du; slope accumulate_du";
  enum Argument : std::uint32_t { u, dy, du };
  enum Attribute : std::uint32_t { slope, accumulate_du };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(u);
    call.like(dy, u);
    call.like(du, u);
  }
};

}  // namespace mulligan::shapes
