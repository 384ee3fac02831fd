// The products of the cpu backend's matmul have a vectorised implementation: oneDNN's reference loop, a
// thousand times slower, has no place in them. bf16 is computed with the instructions that pay.
#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "plugins/backends/cpu/math/onednn_gemm.h"
#include "plugins/backends/cpu/math/spread_rows.h"
#include "tests/kernels/backend_fixture.h"

namespace mulligan::cpu {
namespace {

TEST(OnednnGemm, TilesOfAWiderResultAreFast) {
  for (const std::int64_t row : {512, 2048}) {
    for (const float alpha : {1.0F, 1.125F}) {
      for (const float beta : {0.0F, 1.0F}) {
        const GemmShape shape{.m = 48,
                              .n = 512,
                              .k = 16,
                              .a_row = 16,
                              .a_column = 1,
                              .b_row = 1,
                              .b_column = 16,
                              .c_row = row,
                              .alpha = alpha,
                              .beta = beta};
        const auto gemm = make_gemm(shape, 1);
        ASSERT_TRUE(gemm);
        EXPECT_TRUE(gemm->fast()) << "c_row " << row << ", alpha " << alpha << ", beta " << beta;
      }
    }
  }
}

// Copied rows begin at cache lines, do not overlap, and do not fall into the sets that the copy is made to leave.
TEST(SpreadRows, StridesDoNotConflict) {
  EXPECT_TRUE(rows_conflict(512));
  EXPECT_TRUE(rows_conflict(2048));
  EXPECT_FALSE(rows_conflict(520));
  for (std::int64_t columns = 1; columns <= 2100; ++columns) {
    const std::int64_t stride = spread_stride(columns);
    EXPECT_GE(stride, columns);
    EXPECT_EQ(stride % 16, 0) << columns;
    EXPECT_FALSE(rows_conflict(stride)) << columns;
  }
}

// Operands of such rows, in every layout, tiles of every width among them; copied where this processor needs it.
TEST(SpreadRows, ProductsOfConflictingRowsAreRight) {
  using kernel_test::Array;
  constexpr std::int64_t m = 512, n = 1536, k = 27;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      Array a{MLG_F32, transpose_a ? std::vector<std::int64_t>{k, m} : std::vector<std::int64_t>{m, k}, {}};
      Array b{MLG_F32, transpose_b ? std::vector<std::int64_t>{n, k} : std::vector<std::int64_t>{k, n}, {}};
      for (std::int64_t i = 0; i < m * k; ++i) a.values.push_back(static_cast<double>(i * 7 % 23) - 11);
      for (std::int64_t i = 0; i < k * n; ++i) b.values.push_back(static_cast<double>(i * 5 % 19) - 9);
      const auto result = kernel_test::backend_with_threads(2).run(
          {.kernel = "matmul",
           .arguments = {{"a", a}, {"b", b}, {"c", {MLG_F32, {m, n}, std::vector<double>(m * n)}}},
           .attributes = {{"transpose_a", double(transpose_a)},
                          {"transpose_b", double(transpose_b)},
                          {"alpha", 1},
                          {"beta", 0}},
           .aliases = {}});
      const std::vector<double>& c = result.written.at("c").values;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;  // of whole numbers, so exact in f32, too
          for (std::int64_t l = 0; l < k; ++l) {
            sum += a.values[static_cast<std::size_t>(transpose_a ? l * m + i : i * k + l)] *
                   b.values[static_cast<std::size_t>(transpose_b ? j * k + l : l * n + j)];
          }
          ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum) << i << " " << j;
        }
      }
    }
  }
}

// Longer than what is copied at a time, by whole pieces and by a rest; each operand copied, both, and the sum added to
// what was there. Copies take memory for one piece, however long the sums are.
TEST(SpreadRows, LongSumsAreMadeOfPieces) {
  constexpr std::int64_t m = 96, n = 112, row = 512;
  for (const std::int64_t k : {1024, 2048, 2500}) {
    std::vector<float> a(static_cast<std::size_t>(k * row)), b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(i * 7 % 23) - 11;
      b[i] = static_cast<float>(i * 5 % 19) - 9;
    }
    std::vector<float> c(m * row, 3.0F);
    const GemmShape shape{.m = m,
                          .n = n,
                          .k = k,
                          .a_row = 1,
                          .a_column = row,
                          .b_row = row,
                          .b_column = 1,
                          .c_row = row,
                          .alpha = 0.5F,
                          .beta = 1};
    ASSERT_TRUE(spreads_a(shape) && spreads_b(shape));
    const auto gemm = make_spread_gemm(shape, 1);
    ASSERT_TRUE(gemm && gemm->fast());
    EXPECT_LT(gemm->scratch_bytes(), 2U << 20) << k;
    std::vector<float> scratch(gemm->scratch_bytes() / sizeof(float) + 64);
    ASSERT_TRUE(gemm->run(0, a.data(), b.data(), c.data(), scratch.data()));
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < row; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; j < n && l < k; ++l)
          sum += a[static_cast<std::size_t>(l * row + i)] * b[static_cast<std::size_t>(l * row + j)];
        ASSERT_EQ(c[static_cast<std::size_t>(i * row + j)], 3 + sum / 2) << k << ": " << i << " " << j;
      }
    }
  }
}

// Makes oneDNN believe, in a process of its own, that the processor has less than it has.
class OnednnIsa : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_is("intel"))
      GTEST_SKIP() << "needs an Intel processor with AVX512-BF16";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void TearDown() override { unsetenv("ONEDNN_MAX_CPU_ISA"); }
  static void pretend(const char* isa) { setenv("ONEDNN_MAX_CPU_ISA", isa, 1); }
};

TEST_F(OnednnIsa, IntelsDotProductsDoNotPay) {
  const auto bf16_is_fast = [] {
    const auto gemm = make_gemm({.m = 64,
                                 .n = 64,
                                 .k = 64,
                                 .a_row = 64,
                                 .a_column = 1,
                                 .b_row = 64,
                                 .b_column = 1,
                                 .c_row = 64,
                                 .ab_bf16 = true},
                                1);
    return gemm && gemm->fast();
  };
  pretend("AVX512_CORE_BF16");
  EXPECT_EXIT(std::exit(bf16_is_fast() ? 1 : 0), ::testing::ExitedWithCode(0), "");
  pretend("AVX512_CORE");
  EXPECT_EXIT(std::exit(bf16_is_fast() ? 1 : 0), ::testing::ExitedWithCode(0), "");
}

// matmul's own tests on widened operands, with tiles rounded and inner dimensions cut.
TEST_F(OnednnIsa, WidenedProductsAreRight) {
  char program[PATH_MAX] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  pretend("AVX512_CORE_BF16");
  const std::string command = "'" + std::string(program) + "' --gtest_filter='*matmul.Forward' >&2";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace mulligan::cpu
