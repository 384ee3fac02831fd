// The products of the cpu backend's matmul have a vectorised implementation: oneDNN's reference loop, a
// thousand times slower, has no place in them.
#include <gtest/gtest.h>

#include "plugins/backends/cpu/kernels/onednn_gemm.h"

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

}  // namespace
}  // namespace mulligan::cpu
