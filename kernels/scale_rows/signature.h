#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct ScaleRowsForward {
  static constexpr const char* name = "scale_rows_fwd";
  static constexpr const char* signature = "in w, in s, out y";
  enum Argument : std::uint32_t { w, s, y };
  static void check(const sdk::CallChecks& call) {
    call.matrix(w);
    call.f32(s, {call.dim(w, 0)});
    call.like(y, w);
  }
};

struct ScaleRowsBackward {
  static constexpr const char* name = "scale_rows_bwd";
  static constexpr const char* signature = "in w, in s, in dy, inout? dw, inout? ds";
  enum Argument : std::uint32_t { w, s, dy, dw, ds };
  static void check(const sdk::CallChecks& call) {
    call.matrix(w);
    for (const std::uint32_t argument : {s, dy, dw, ds}) call.dtype(argument, {MLG_F32});
    call.shape(s, {call.dim(w, 0)});
    call.same_shape(dy, w);
    call.same_shape(dw, w);
    call.same_shape(ds, s);
  }
};

}  // namespace mulligan::shapes
