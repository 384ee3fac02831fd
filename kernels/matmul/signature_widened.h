// What every backend's widened_matmul demands of its arguments (docs/kernels.md), and the extents of the matmul.
#pragma once

#include <mulligan/call_checks.hpp>

#include <cmath>

namespace mulligan::shapes {

// c = a op(b) + beta c with b of 16 bits, each element widened to f32 before it is multiplied (LayerCast).
struct WidenedMatmul {
  static constexpr const char* name = "widened_matmul";
  static constexpr const char* signature = "in a, in b, inout c; transpose_b beta";
  enum Argument : std::uint32_t { a, b, c };
  enum Attribute : std::uint32_t { transpose_b, beta };

  // c[m, n] = a[m, k] op(b), op(b) [k, n]
  struct Extents {
    std::int64_t m, n, k;
  };
  static Extents extents(const sdk::Launch& call) {
    return {call.dim(a, 0), call.dim(b, call.flag(transpose_b) ? 0 : 1), call.dim(a, 1)};
  }
  static void check(const sdk::CallChecks& call) {
    call.rank(a, 2, 2);
    call.rank(b, 2, 2);
    call.dtype(a, {MLG_F32});
    call.dtype(b, {MLG_BF16, MLG_F16});
    call.dtype(c, {MLG_F32});
    call.min_elements(a, 1);
    call.min_elements(b, 1);
    const bool transposed = call.flag(transpose_b);
    const Extents e = extents(call);
    call.require(call.dim(b, transposed ? 1 : 0) == e.k, b,
                 "must have the inner dimension of a, " + std::to_string(e.k) + ", on its " +
                     (transposed ? "last" : "first") + " axis");
    call.shape(c, {e.m, e.n});
    call.require(std::isfinite(call.attribute(beta)), c, "needs a finite attribute beta");
  }
};

}  // namespace mulligan::shapes
