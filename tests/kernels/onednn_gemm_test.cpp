// The matmuls of the cpu backend's matmul have a vectorised implementation: oneDNN's reference loop, a
// thousand times slower, has no place in them. bf16 is computed with the instructions that pay.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <unistd.h>

#include <mulligan/kernel.hpp>

#include "plugins/backends/cpu/math/onednn_gemm.h"
#include "plugins/backends/cpu/math/packed_gemm.h"
#include "tests/kernels/backend_fixture.h"

namespace mulligan::cpu::onednn_gemm_test {
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

// In every layout, rows that share cache sets among them, tiles of every width; by packed operands where this CPU
// multiplies so.
TEST(PackedGemm, MatmulIsRightInEveryLayout) {
  using kernel_test::Array;
  constexpr std::int64_t m = 512, n = 1536, k = 27;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      Array a{MLG_F32, transpose_a ? std::vector<std::int64_t>{k, m} : std::vector<std::int64_t>{m, k}, {}};
      Array b{MLG_F32, transpose_b ? std::vector<std::int64_t>{n, k} : std::vector<std::int64_t>{k, n}, {}};
      for (std::int64_t i = 0; i < m * k; ++i) a.values.push_back(static_cast<double>(i * 7 % 23) - 11);
      for (std::int64_t i = 0; i < k * n; ++i) b.values.push_back(static_cast<double>(i * 5 % 19) - 9);
      const auto result = kernel_test::backend_with_threads(2).run(
          kernel_test::kernel_call("matmul", "a b c", {a, b, {MLG_F32, {m, n}, std::vector<double>(m * n)}},
                                   {{"transpose_a", double(transpose_a)},
                                    {"transpose_b", double(transpose_b)},
                                    {"alpha", 1},
                                    {"beta", 0}}));
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

struct Operands {
  Operands(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
    const std::int64_t a_wide = (transpose_a ? m : k) + 3, b_wide = (transpose_b ? k : n) + 5;
    a.resize(static_cast<std::size_t>((transpose_a ? k : m) * a_wide));
    b.resize(static_cast<std::size_t>((transpose_b ? n : k) * b_wide));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 23) - 11;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 19) - 9;
    shape.m = m;
    shape.n = n;
    shape.k = k;
    (transpose_a ? shape.a_column : shape.a_row) = a_wide;
    (transpose_a ? shape.a_row : shape.a_column) = 1;
    (transpose_b ? shape.b_column : shape.b_row) = b_wide;
    (transpose_b ? shape.b_row : shape.b_column) = 1;
    shape.c_row = n + 2;
  }
  double sum(std::int64_t i, std::int64_t j) const {
    double result = 0;
    for (std::int64_t l = 0; l < shape.k; ++l) {
      result += static_cast<double>(a[static_cast<std::size_t>(i * shape.a_row + l * shape.a_column)]) *
                b[static_cast<std::size_t>(l * shape.b_row + j * shape.b_column)];
    }
    return result;
  }

  GemmShape shape;
  std::vector<float> a, b;
};

// c: m rows of c_row elements; the matmul may change the first n of each. `before` is what c holds first. In: the type of
// a and b. Out: that of c.
template <typename In, typename Out>
std::vector<float> packed_of(const Operands& with, float before) {
  GemmShape shape = with.shape;
  shape.ab_bf16 = std::is_same_v<In, sdk::bfloat16>;
  shape.c_bf16 = std::is_same_v<Out, sdk::bfloat16>;
  const auto gemm = make_packed_gemm(shape);
  const std::vector<In> a(with.a.begin(), with.a.end()), b(with.b.begin(), with.b.end());
  std::vector<Out> c(static_cast<std::size_t>(shape.m * shape.c_row), Out(before));
  // Aligned as a workspace is, and followed by what must not change.
  const std::size_t floats = gemm->scratch_bytes() / sizeof(float);
  std::vector<float> memory(floats + 32, 7.0F);
  void* scratch = memory.data();
  std::size_t space = memory.size() * sizeof(float);
  std::align(64, gemm->scratch_bytes(), scratch, space);
  EXPECT_TRUE(gemm->run(0, a.data(), b.data(), c.data(), scratch));
  for (const float* end = static_cast<float*>(scratch) + floats; end < memory.data() + memory.size(); ++end)
    EXPECT_EQ(*end, 7.0F);
  return {c.begin(), c.end()};
}

std::vector<float> packed(const Operands& with, float before) {
  return packed_of<float, float>(with, before);
}

// Blocks that are cut at each edge, sums shorter and longer than a piece, operands in every layout and with gaps between
// their rows. Of whole numbers, so sums are exact in f32, and rounded to bf16 once, however many pieces they are made of.
// What is beyond the diagonal stays, or is right.
template <typename In, typename Out>
void expect_naive(const std::vector<std::array<std::int64_t, 3>>& sizes) {
  for (const auto& [m, n, k] : sizes) {
    for (const int layout : {0, 1, 2, 3}) {
      for (const float beta : {0.0F, 1.0F, -2.0F}) {
        for (const std::int64_t diagonal : {n, std::int64_t{7}}) {
          Operands with(m, n, k, (layout & 1) != 0, (layout & 2) != 0);
          with.shape.alpha = 0.5F;
          with.shape.beta = beta;
          with.shape.diagonal = diagonal;
          // Without beta the result is not read.
          const float before = beta == 0.0F ? std::numeric_limits<float>::quiet_NaN() : 3.0F;
          const std::vector<float> c = packed_of<In, Out>(with, before);
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < with.shape.c_row; ++j) {
              const float is = c[static_cast<std::size_t>(i * with.shape.c_row + j)];
              const bool untouched = is == before || (is != is && before != before);
              const bool wanted = j < n && j <= i + diagonal;
              const float sum =
                  j < n ? static_cast<float>(with.sum(i, j) / 2) + (beta == 0.0F ? 0.0F : 3 * beta) : 0.0F;
              ASSERT_TRUE((!wanted && untouched) || (j < n && is == static_cast<float>(Out(sum))))
                  << m << " x " << n << " x " << k << ", layout " << layout << ", beta " << beta
                  << ", diagonal " << diagonal << ": " << i << " " << j << " is " << is;
            }
          }
        }
      }
    }
  }
}

TEST(PackedGemm, EqualsTheNaiveMatmulAtEveryEdge) {
  expect_naive<float, float>(
      {{1, 1, 1}, {6, 16, 8}, {7, 17, 9}, {11, 63, 255}, {64, 64, 256}, {65, 130, 257}, {5, 200, 600}});
}

// An f32 result of widened operands is not rounded.
TEST(PackedGemm, RoundsBf16ResultsOnce) {
  const std::vector<std::array<std::int64_t, 3>> even = {{1, 1, 2},     {12, 32, 8},    {13, 33, 10},
                                                         {64, 64, 512}, {65, 130, 514}, {25, 200, 1500}},
                                                 odd = {{14, 40, 9}, {30, 70, 777}};
  expect_naive<sdk::bfloat16, sdk::bfloat16>(even);
  if (bf16_matmuls_pay()) return;
  expect_naive<sdk::bfloat16, sdk::bfloat16>(odd);
  expect_naive<sdk::bfloat16, float>(even);
  expect_naive<sdk::bfloat16, float>(odd);
}

TEST(PackedGemm, LeavesOutWhatIsFarBeyondTheDiagonal) {
  for (const std::int64_t diagonal : {0, 7, 60, 200}) {
    Operands with(50, 150, 300, true, false);
    with.shape.beta = 1.0F;
    with.shape.diagonal = diagonal;
    EXPECT_EQ(packed(with, 3.0F)[149] == 3, diagonal < 149) << diagonal;
  }
}

// A row has the same bits wherever it lies and however many there are: of sums that f32 does not hold exactly.
TEST(PackedGemm, ARowDoesNotDependOnTheOthers) {
  constexpr std::int64_t m = 29, n = 70, k = 520;
  Operands whole(m, n, k, false, false);
  for (float& x : whole.a) x *= 0.1F;
  for (float& x : whole.b) x *= 0.3F;
  const std::vector<float> c = packed(whole, 0.0F);
  for (std::int64_t first = 0; first < m; ++first) {
    for (const std::int64_t rows : {std::int64_t{1}, std::min<std::int64_t>(8, m - first)}) {
      Operands part = whole;
      part.shape.m = rows;
      part.a.erase(part.a.begin(), part.a.begin() + first * part.shape.a_row);
      const std::vector<float> some = packed(part, 0.0F);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), c.begin() + first * whole.shape.c_row))
          << first << " " << rows;
    }
  }
}

// However long the sums are.
TEST(PackedGemm, TakesMemoryForOnePieceOfK) {
  GemmShape shape = Operands(256, 512, 1, true, false).shape;
  shape.k = std::int64_t{1} << 40;
  EXPECT_LT(make_packed_gemm(shape)->scratch_bytes(), 512U << 10);
}

// Makes oneDNN believe, in a process of its own, that the CPU has less than it has.
class OnednnIsa : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_is("intel"))
      GTEST_SKIP() << "needs an Intel CPU with AVX512-BF16";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void TearDown() override { unsetenv("ONEDNN_MAX_CPU_ISA"); }
  static void pretend(const char* isa) { setenv("ONEDNN_MAX_CPU_ISA", isa, 1); }
};

TEST_F(OnednnIsa, IntelsDotProductsDoNotPay) {
  pretend("AVX512_CORE_BF16");
  EXPECT_EXIT(std::exit(bf16_matmuls_pay() ? 1 : 0), ::testing::ExitedWithCode(0), "");
  pretend("AVX512_CORE");
  EXPECT_EXIT(std::exit(bf16_matmuls_pay() ? 1 : 0), ::testing::ExitedWithCode(0), "");
}

// matmul's own tests on widened operands, with tiles rounded and inner dimensions cut.
TEST_F(OnednnIsa, WidenedMatmulsAreRight) {
  char program[PATH_MAX] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  const std::string command = "'" + std::string(program) + "' --gtest_filter='*matmul.Forward' >&2";
  for (const char* isa : {"AVX512_CORE_BF16", "AVX2"}) {
    pretend(isa);
    EXPECT_EQ(std::system(command.c_str()), 0) << isa;
  }
}

}  // namespace
}  // namespace mulligan::cpu::onednn_gemm_test
