// What every backend's matmul demands of its arguments (docs/kernels.md), and the extents of the matmul.
#pragma once

#include <mulligan/call_checks.hpp>

#include <cmath>

namespace mulligan::shapes {

struct Matmul {
  static constexpr const char* name = "matmul";
  static constexpr const char* signature = "in a, in b, inout c; transpose_a transpose_b alpha beta";
  enum Argument : std::uint32_t { a, b, c };
  enum Attribute : std::uint32_t { transpose_a, transpose_b, alpha, beta };

  // c[batch, m, n] = a[batch, m, k] b[batch, k, n]
  struct Extents {
    std::int64_t batch, m, n, k;
    bool transpose_a, transpose_b;
  };
  static Extents extents(const sdk::Launch& call) {
    const int r = call.tensor(a).rank;
    const bool ta = call.flag(transpose_a), tb = call.flag(transpose_b);
    return {r == 3 ? call.dim(a, 0) : 1,
            call.dim(a, ta ? r - 1 : r - 2),
            call.dim(b, tb ? r - 2 : r - 1),
            call.dim(a, ta ? r - 2 : r - 1),
            ta,
            tb};
  }
  static void check(const sdk::CallChecks& call) { check_matmul(call, c); }
  // `result`: the argument that receives the matmul's result.
  static void check_matmul(const sdk::CallChecks& call, std::uint32_t result) {
    call.rank(a, 2, 3);
    call.compute_dtype(a);
    call.same_dtype(b, a);
    call.dtype(result, {MLG_F32, call.dtype(a)});
    const int r = call.tensor(a).rank;
    call.require(call.tensor(b).rank == r, b, "must have the rank of a, " + std::to_string(r));
    const Extents e = extents(call);
    call.require(call.dim(b, e.transpose_b ? r - 1 : r - 2) == e.k, b,
                 "must have the inner dimension of a, " + std::to_string(e.k) + ", on its " +
                     (e.transpose_b ? "last" : "first matrix") + " axis");
    call.min_elements(a, 1);
    call.min_elements(b, 1);
    if (r == 3) {
      call.require(call.dim(b, 0) == e.batch, b, "must have the batch size of a");
      call.shape(result, {e.batch, e.m, e.n});
    } else {
      call.shape(result, {e.m, e.n});
    }
    call.require(std::isfinite(call.attribute(alpha)) && std::isfinite(call.attribute(beta)), result,
                 "needs finite attributes alpha and beta");
  }
};

}  // namespace mulligan::shapes
