// widened_matmul against its formula, and against matmul with the widened b: the same bits on a backend that computes both.
#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::widened_matmul_test {
namespace {

struct Problem {
  std::int64_t m, n, k;
  double beta = 0;
};
// Odd ones, shorter last tiles, single rows as generation has them, an inner dimension that is cut in pieces.
const Problem kProblems[] = {{5, 7, 3},    {1, 1, 1, 1.0}, {65, 33, 129, 1.0}, {1, 130, 70},
                             {64, 64, 16}, {300, 530, 17}, {12, 600, 9, -0.5}, {17, 9, 2100, 1.0}};
// More than one tile of columns over an inner dimension of several pieces; rows of generation and of training.
const Problem kLarge[] = {{3, 1100, 1500}, {1, 1536, 512}, {257, 1040, 96, 1.0}, {2, 600, 2049}};

Operator widened_matmul() {
  Operator op{.forward = "widened_matmul", .backward = ""};
  for (const mlg_dtype stored : {MLG_BF16, MLG_F16}) {
    for (const bool transpose_b : {false, true}) {
      for (const Problem& p : kProblems) {
        // beta = 0 must not read c: NaN times 0 would show.
        const Generator before = p.beta != 0 ? normal() : [](Random&, std::int64_t) {
          return std::numeric_limits<double>::quiet_NaN();
        };
        const Shape b = transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n};
        const Operand c{"c", {p.m, p.n}, MLG_F32, before};
        op.cases.push_back({{{"a", {p.m, p.k}, MLG_F32}, {"b", b, stored}, c},
                            {c},
                            {{"transpose_b", transpose_b ? 1.0 : 0.0}, {"beta", p.beta}}});
      }
    }
  }
  return op.computes([](auto& call) {
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    auto &a = call.in("a"), &b = call.in("b"), &before = call.in("c"), &c = call.out("c");
    const bool transposed = call.attribute("transpose_b") != 0;
    const double beta = call.attribute("beta");
    for (std::int64_t i = 0; i < c.dim(0); ++i) {
      for (std::int64_t j = 0; j < c.dim(1); ++j) {
        S sum = 0.0;
        for (std::int64_t l = 0; l < a.dim(1); ++l) sum += a(i, l) * (transposed ? b(j, l) : b(l, j));
        c(i, j) = sum;
        if (beta != 0) c(i, j) += S(beta) * before(i, j);
      }
    }
  });
}

const RegisterOperator registered{widened_matmul()};

// The cuda backend's tests compare with the cpu backend.
bool is_cpu() {
  return reference_backend() == nullptr;
}

// LayerCast's promise: with weights that 16 bits hold, storing them in 16 bits changes no bit of a result.
TEST(WidenedMatmul, HasTheBitsOfAnF32MatmulWithTheWidenedWeight) {
  BackendFixture& backend = backend_with_threads(2);
  if (!is_cpu()) GTEST_SKIP() << "matmuls in f32 are a library's here";
  Random random(11);
  for (const mlg_dtype stored : {MLG_BF16, MLG_F16}) {
    for (const bool transposed : {false, true}) {
      std::vector<Problem> problems(std::begin(kProblems), std::end(kProblems));
      problems.insert(problems.end(), std::begin(kLarge), std::end(kLarge));
      for (const Problem& p : problems) {
        const Array a = draw(MLG_F32, {p.m, p.k}, random), c = draw(MLG_F32, {p.m, p.n}, random);
        const Array b = draw(stored, transposed ? Shape{p.n, p.k} : Shape{p.k, p.n}, random);
        Array wide = b;
        wide.dtype = MLG_F32;
        const double transpose = transposed ? 1.0 : 0.0;
        const KernelResult narrow = backend.run(kernel_call("widened_matmul", "a b c", {a, b, c},
                                                            {{"transpose_b", transpose}, {"beta", p.beta}}));
        const KernelResult plain = backend.run(
            kernel_call("matmul", "a b c", {a, wide, c},
                        {{"transpose_a", 0}, {"transpose_b", transpose}, {"alpha", 1}, {"beta", p.beta}}));
        EXPECT_EQ(narrow.bytes.at("c"), plain.bytes.at("c"))
            << p.m << " x " << p.n << " x " << p.k << (transposed ? ", transposed" : "");
      }
    }
  }
}

// The tiles of the cuda kernel are fixed: a row has the bits that it has alone.
TEST(WidenedMatmul, ARowDoesNotDependOnOtherRowsOnTheCudaBackend) {
  BackendFixture& backend = backend_with_threads(2);
  if (is_cpu()) GTEST_SKIP() << "its tiles follow from the shape";
  Random random(5);
  constexpr std::int64_t kColumns = 70, kInner = 45;
  const Array all = draw(MLG_F32, {130, kInner}, random), b = draw(MLG_BF16, {kColumns, kInner}, random);
  const auto matmul = [&](std::int64_t rows) {
    Array a = all;
    a.shape[0] = rows;
    a.values.resize(static_cast<std::size_t>(rows * kInner));
    const Array c{MLG_F32, {rows, kColumns}, std::vector<double>(static_cast<std::size_t>(rows * kColumns))};
    std::vector<std::byte> bytes =
        backend.run(kernel_call("widened_matmul", "a b c", {a, b, c}, {{"transpose_b", 1}, {"beta", 0}}))
            .bytes.at("c");
    bytes.resize(kColumns * sizeof(float));
    return bytes;
  };
  for (const std::int64_t rows : {2, 7, 64, 65, 130}) EXPECT_EQ(matmul(rows), matmul(1)) << rows << " rows";
}

const RegisterRows registered_rows{{"widened_matmul", "a:Tk/f b:nk/b c:Tn/f", "transpose_b=1"},
                                   {"widened_matmul", "a:Tn/f b:nk/b c:Tk/f", "beta=1"}};

}  // namespace
}  // namespace mulligan::kernel_test::widened_matmul_test
