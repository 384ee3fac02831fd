#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct LinearLeakyReluSquaredForward {
  static constexpr const char* name = "linear_leaky_relu_squared_fwd";
  static constexpr const char* signature = "in x, in w, out? u, out y; slope";
  enum Argument : std::uint32_t { x, w, u, y };
  enum Attribute : std::uint32_t { slope };
  static void check(const sdk::CallChecks& call) {
    call.matrix(x);
    call.min_elements(x, 1);
    call.same_dtype(w, x);
    call.shape(w, {-1, call.dim(x, 1)});
    call.min_elements(w, 1);
    call.same_dtype(y, x);
    call.shape(y, {call.dim(x, 0), call.dim(w, 0)});
    call.like(u, y);
  }
};

struct LinearLeakyReluSquaredBackward {
  static constexpr const char* name = "linear_leaky_relu_squared_bwd";
  static constexpr const char* signature = "in dy, in w, in u, out du; slope";
  enum Argument : std::uint32_t { dy, w, u, du };
  enum Attribute : std::uint32_t { slope };
  static void check(const sdk::CallChecks& call) {
    call.matrix(dy);
    call.min_elements(dy, 1);
    call.same_dtype(w, dy);
    call.shape(w, {call.dim(dy, 1), -1});
    call.min_elements(w, 1);
    call.same_dtype(u, dy);
    call.shape(u, {call.dim(dy, 0), call.dim(w, 1)});
    call.like(du, u);
  }
};

}  // namespace mulligan::shapes
