// The arguments are those of matmul, and what it adds.
#pragma once

#include "kernels/matmul/signature.h"

namespace mulligan::shapes {

// c = alpha op(a) op(b) + beta term: matmul into a copy of `term`, without the copy.
struct MatmulAdd : Matmul {
  static constexpr const char* name = "matmul_add";
  static constexpr const char* signature = "in a, in b, in term, out c; transpose_a transpose_b alpha beta";
  enum Argument : std::uint32_t { term = 2, c };

  static void check(const sdk::CallChecks& call) {
    Matmul::check_matmul(call, c);
    call.like(term, c);
  }
};

}  // namespace mulligan::shapes
