// The products of the cpu backend's matmul have a vectorised implementation: oneDNN's reference loop, a
// thousand times slower, has no place in them. bf16 is computed with the instructions that pay.
#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "plugins/backends/cpu/math/onednn_gemm.h"

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
