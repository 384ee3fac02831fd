// c = alpha op(a) op(b) + beta term, naively: the formula of matmul, whose term is c, and of its relatives.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test {

template <typename Call>
void matmul_formula(Call& call, const char* term = "c") {
  using S = typename std::remove_reference_t<decltype(call)>::Scalar;
  auto &a = call.in("a"), &b = call.in("b"), &before = call.in(term), &c = call.out("c");
  const bool ta = call.attribute("transpose_a") != 0, tb = call.attribute("transpose_b") != 0;
  const int rank = static_cast<int>(a.shape.size());
  const std::int64_t batch = rank == 3 ? a.dim(0) : 1, m = c.dim(rank - 2), n = c.dim(rank - 1);
  const std::int64_t k = a.size() / (batch * m);
  const double alpha = call.attribute("alpha"), beta = call.attribute("beta");
  for (std::int64_t i = 0; i < c.size(); ++i) {
    const std::int64_t item = i / (m * n), row = i / n % m, column = i % n;
    S sum = 0.0;
    for (std::int64_t j = 0; j < k; ++j) {
      sum += a[item * m * k + (ta ? j * m + row : row * k + j)] *
             b[item * k * n + (tb ? column * k + j : j * n + column)];
    }
    c[i] = S(alpha) * sum;
    if (beta != 0) c[i] += S(beta) * before[i];
  }
}

}  // namespace mulligan::kernel_test
