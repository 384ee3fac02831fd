// c = alpha op(a) op(b) + beta term, naively: the formula of matmul, whose term is c, and of its relatives; and their cases.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
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

struct MatmulProblem {
  std::int64_t m = 0, n = 0, k = 0, batch = 0;  // batch 0: rank 2
  double alpha = 1.0, beta = 0.0;
};

inline Case matmul_case(const MatmulProblem& p, bool transpose_a, bool transpose_b,
                        std::optional<mlg_dtype> c_dtype, const char* term = "c") {
  const auto shape = [&](bool swapped, std::int64_t rows, std::int64_t columns) {
    if (swapped) std::swap(rows, columns);
    return p.batch == 0 ? Shape{rows, columns} : Shape{p.batch, rows, columns};
  };
  // beta = 0 must not read the term: NaN times 0 would show.
  const Generator before = p.beta != 0.0 ? normal() : normal(std::numeric_limits<double>::quiet_NaN());
  const Shape c = shape(false, p.m, p.n);
  return {
      {{"a", shape(transpose_a, p.m, p.k)}, {"b", shape(transpose_b, p.k, p.n)}, {term, c, c_dtype, before}},
      {{"c", c, c_dtype}},
      {{"transpose_a", transpose_a ? 1.0 : 0.0},
       {"transpose_b", transpose_b ? 1.0 : 0.0},
       {"alpha", p.alpha},
       {"beta", p.beta}}};
}

// body(transpose_a, transpose_b, the dtype of c) for each that there is.
template <typename Body>
void for_each_layout(Body body) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      body(transpose_a, transpose_b, std::optional<mlg_dtype>());
      body(transpose_a, transpose_b, std::optional<mlg_dtype>(MLG_F32));
    }
  }
}

}  // namespace mulligan::kernel_test
