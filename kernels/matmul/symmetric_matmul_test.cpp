// symmetric_matmul against the formula of matmul, on operands whose matmul equals its transpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/matmul_formula.h"
#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test::symmetric_matmul_test {
namespace {

// A number between -1 and 1 that depends on the three indices alone.
double scattered(std::int64_t item, std::int64_t i, std::int64_t j) {
  return std::sin(0.7 + 12.9898 * static_cast<double>(i) + 78.233 * static_cast<double>(j) +
                  3.1 * static_cast<double>(item));
}

// op(b) is the transpose of op(a).
Case symmetric_case(MatmulProblem p, bool transpose_a, bool transpose_b, std::optional<mlg_dtype> c_dtype) {
  p.m = p.n;
  Case c = matmul_case(p, transpose_a, transpose_b, c_dtype);
  // Element (i, j) of op(a) [n, k], wherever it is stored.
  const auto factor = [&](bool swapped) {
    return [n = p.n, k = p.k, swapped](Random&, std::int64_t index) {
      const std::int64_t item = index / (n * k), at = index % (n * k);
      return swapped ? scattered(item, at % n, at / n) : scattered(item, at / k, at % k);
    };
  };
  c.inputs[0].generate = factor(transpose_a);
  c.inputs[1].generate = factor(!transpose_b);
  if (p.beta == 0.0) return c;
  c.inputs[2].generate = [n = p.n](Random&, std::int64_t index) {
    const std::int64_t i = index % (n * n) / n, j = index % n;
    return scattered(index / (n * n), std::min(i, j), std::max(i, j));
  };
  return c;
}

Operator symmetric_matmul() {
  Operator op{.forward = "symmetric_matmul", .backward = ""};
  for_each_layout([&](bool transpose_a, bool transpose_b, std::optional<mlg_dtype> c) {
    const auto add = [&](const MatmulProblem& p) {
      op.cases.push_back(symmetric_case(p, transpose_a, transpose_b, c));
    };
    add({.n = 5, .k = 3});
    add({.n = 1, .k = 1, .beta = 1.0});
    add({.n = 65, .k = 129, .alpha = 0.5, .beta = 1.0});
    add({.n = 80, .k = 6, .batch = 3, .alpha = -1.5, .beta = 0.25});
    add({.n = 300, .k = 17, .beta = 1.0});
    if (transpose_a != transpose_b)
      add({.n = 600, .k = transpose_a ? 9 : 10, .batch = 2, .alpha = 1.125, .beta = -2.0});
    add({.n = 130, .k = 200});
    add({.n = 130, .k = 1100, .beta = 1.0});
  });
  return op.computes([](auto& call) { matmul_formula(call); });
}

const RegisterOperator registered{symmetric_matmul()};

// The upper triangle is a copy of the lower one.
TEST(SymmetricMatmul, F32ResultsEqualTheirTranspose) {
  for (const std::int64_t n : {65, 300, 600}) {
    const Case c = symmetric_case({.n = n, .k = 34, .batch = 2, .alpha = 0.3}, false, true, std::nullopt);
    KernelCall call = kernel_call("symmetric_matmul", "", {}, c.attributes);
    Random random(1);
    for (const Operand& operand : c.inputs) {
      Array array{MLG_F32, operand.shape, {}};
      for (std::int64_t i = 0; i < element_count(operand.shape); ++i)
        array.values.push_back(round_to(MLG_F32, operand.generate(random, i)));
      call.arguments[operand.name] = std::move(array);
    }
    const std::vector<double> result = backend_with_threads(2).run(call).written.at("c").values;
    for (std::int64_t item = 0; item < 2; ++item) {
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < i; ++j) {
          ASSERT_EQ(result[(item * n + i) * n + j], result[(item * n + j) * n + i])
              << n << ": " << i << ", " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mulligan::kernel_test::symmetric_matmul_test
