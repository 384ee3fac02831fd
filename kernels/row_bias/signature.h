#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct RowBiasForward {
  static constexpr const char* name = "row_bias_fwd";
  static constexpr const char* signature = "in? x, in bias, out y";
  enum Argument : std::uint32_t { x, bias, y };
  static void check(const sdk::CallChecks& call) {
    call.matrix(y);
    call.f32(bias, {call.dim(y, 1)});
    call.like(x, y);
  }
};

struct RowBiasBackward {
  static constexpr const char* name = "row_bias_bwd";
  static constexpr const char* signature = "in dy, inout dbias";
  enum Argument : std::uint32_t { dy, dbias };
  static void check(const sdk::CallChecks& call) {
    call.matrix(dy);
    call.f32(dbias, {call.dim(dy, 1)});
  }
};

}  // namespace mulligan::shapes
