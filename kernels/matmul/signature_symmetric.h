// The arguments are those of matmul, of a square result.
#pragma once

#include "kernels/matmul/signature.h"

namespace mulligan::shapes {

// The caller promises that op(a) op(b), and c where beta reads it, equal their transposes.
struct SymmetricMatmul : Matmul {
  static constexpr const char* name = "symmetric_matmul";

  static void check(const sdk::CallChecks& call) {
    Matmul::check(call);
    const Extents e = extents(call);
    call.require(e.m == e.n, c, "must be square, for a symmetric matmul");
  }
};

}  // namespace mulligan::shapes
