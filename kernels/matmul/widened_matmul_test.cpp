// widened_matmul against its formula, and against matmul with the widened b: the same bits on a backend that computes both.
#include <gtest/gtest.h>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/matmul_formula.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::widened_matmul_test {
namespace {

// Odd ones, shorter last tiles, single rows as generation has them, an inner dimension that is cut in pieces.
const MatmulProblem kProblems[] = {{.m = 5, .n = 7, .k = 3},
                                   {.m = 1, .n = 1, .k = 1, .beta = 1.0},
                                   {.m = 65, .n = 33, .k = 129, .beta = 1.0},
                                   {.m = 1, .n = 130, .k = 70},
                                   {.m = 64, .n = 64, .k = 16},
                                   {.m = 12, .n = 600, .k = 9, .beta = -0.5},
                                   {.m = 300, .n = 530, .k = 17},
                                   {.m = 17, .n = 9, .k = 2100, .beta = 1.0}};
// More than one tile of columns over an inner dimension of several pieces; rows of generation and of training.
const MatmulProblem kLarge[] = {{.m = 3, .n = 1100, .k = 1500},
                                {.m = 1, .n = 1536, .k = 512},
                                {.m = 257, .n = 1040, .k = 96, .beta = 1.0},
                                {.m = 2, .n = 600, .k = 2049}};

Operator widened_matmul() {
  Operator op{.forward = "widened_matmul", .backward = ""};
  for (const mlg_dtype stored : {MLG_BF16, MLG_F16}) {
    for (const bool transpose_b : {false, true}) {
      for (const MatmulProblem& p : kProblems) {
        Case& c = op.cases.emplace_back(matmul_case(p, false, transpose_b, MLG_F32));
        c.inputs[0].dtype = MLG_F32;
        c.inputs[1].dtype = stored;
        for (const char* fixed : {"transpose_a", "alpha"}) c.attributes.erase(fixed);
      }
    }
  }
  return op.computes([](auto& call) {
    call.attributes["transpose_a"] = 0;
    call.attributes["alpha"] = 1;
    matmul_formula(call);
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
      std::vector<MatmulProblem> problems(std::begin(kProblems), std::end(kProblems));
      problems.insert(problems.end(), std::begin(kLarge), std::end(kLarge));
      for (const MatmulProblem& p : problems) {
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
