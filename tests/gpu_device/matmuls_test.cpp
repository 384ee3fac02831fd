// Which of cuBLASLt's algorithms a matmul gets.
#include <cublasLt.h>

#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::matmuls_test {
namespace {

constexpr GemmShape kMeasured{.m = 2048, .n = 2048, .k = 1024};

class Matmuls : public StubDevice {
 protected:
  // The algorithm that a matmul runs with, if the proposed ones take these times.
  static int chosen(std::vector<float> milliseconds, mlg_dtype dtype = MLG_F32) {
    stub().milliseconds = std::move(milliseconds);
    GpuDevice gpu = device();
    GemmShape shape = kMeasured;
    shape.input = shape.output = dtype;
    const std::unique_ptr<Gemm> gemm = gpu.gemm(shape);
    return algorithm_of_run(gpu, *gemm, shape);
  }
};

TEST_F(Matmuls, TakeTheFastest) {
  EXPECT_EQ(chosen({3, 1, 2}), 1);
  EXPECT_EQ(chosen({3, 2, 1}, MLG_BF16), 2);
}

TEST_F(Matmuls, AreTimedOnRandomNumbers) {
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) chosen({3, 1, 2}, dtype);
  EXPECT_EQ(stub().zero_operands, 0);
}

// Matmuls in f32 are computed in f32: neither the kind of arithmetic nor an algorithm rounds to TF32.
TEST_F(Matmuls, OfF32NeverUseTf32) {
  chosen({3, 1});
  EXPECT_EQ(stub().compute_type, CUBLAS_COMPUTE_32F) << "and not CUBLAS_COMPUTE_32F_FAST_TF32";
  EXPECT_EQ(stub().allowed & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, 0u);
  EXPECT_NE(stub().allowed & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, 0u);
  chosen({3, 1}, MLG_BF16);
  EXPECT_EQ(stub().allowed, ~0ULL) << "asked of f32 alone";
}

// Timing an algorithm multiplies matrices of the matmul's own size, in memory that holds them: of one pair, of
// many, and where one side is a single row.
TEST_F(Matmuls, AreTimedInMemoryThatHoldsThem) {
  for (const GemmShape& shape :
       {kMeasured, GemmShape{.batch = 10, .m = 1024, .n = 768, .k = 640, .transpose_a = true},
        GemmShape{.m = 1024, .n = 8192, .k = 512, .transpose_b = true, .input = MLG_BF16}}) {
    GpuDevice gpu = device();
    EXPECT_NO_THROW(gpu.gemm(shape)) << stub().violation;
  }
  EXPECT_EQ(stub().violation, "");
}

TEST_F(Matmuls, AnAlgorithmThatFailsIsLeftOut) {
  EXPECT_EQ(chosen({-1, 3, 2, -1}), 2);
  EXPECT_EQ(chosen({4, -1}), 0);
}

TEST_F(Matmuls, WhereAllAlgorithmsFailTheMatmulIsNamed) {
  EXPECT_EQ(
      said_by([] {
        chosen({-1, -1});
      }),
      "each of the 2 algorithms that cuBLASLt proposes for the matmul [2048, 1024] x [1024, 2048] fails: "
      "cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED (status 13)");
}

}  // namespace
}  // namespace mulligan::cuda::matmuls_test
