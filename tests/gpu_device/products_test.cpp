// Which of cuBLASLt's algorithms a product gets.
#include <cublasLt.h>

#include "tests/gpu_device/stand_in_device.h"

namespace mulligan::cuda {
namespace {

constexpr GemmShape kShape{
    .m = 300, .n = 500, .k = 700, .stride_a = 210000, .stride_b = 350000, .stride_c = 150000};

class Products : public StandInDevice {
 protected:
  // The algorithm that a product runs with, where those proposed take so long.
  static int chosen(std::vector<float> milliseconds, mlg_dtype dtype = MLG_F32) {
    stand_in().milliseconds = std::move(milliseconds);
    GpuDevice gpu = device();
    GemmShape shape = kShape;
    shape.input = shape.output = dtype;
    const std::unique_ptr<Gemm> gemm = gpu.gemm(shape);
    DeviceArgument operands[3];
    for (DeviceArgument& operand : operands) {
      operand.address = gpu.allocate(350000 * sizeof(float));
      gpu.fill(operand.address, 1, 350000 * sizeof(float));
    }
    stand_in().last_algorithm = -1;
    gemm->run(operands[0], operands[1], operands[2], operands[2], nullptr);
    for (const DeviceArgument& operand : operands) gpu.free(operand.address);
    return stand_in().last_algorithm;
  }
};

TEST_F(Products, TakeTheFastest) {
  EXPECT_EQ(chosen({3, 1, 2}), 1);
  EXPECT_EQ(chosen({3, 2, 1}, MLG_BF16), 2);
}

TEST_F(Products, AreTimedOnRandomNumbers) {
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) chosen({3, 1, 2}, dtype);
  EXPECT_EQ(stand_in().zero_operands, 0);
}

// Products in f32 are computed in f32: neither the kind of arithmetic nor an algorithm rounds to TF32.
TEST_F(Products, OfF32NeverUseTf32) {
  chosen({3, 1});
  EXPECT_EQ(stand_in().compute_type, CUBLAS_COMPUTE_32F) << "and not CUBLAS_COMPUTE_32F_FAST_TF32";
  EXPECT_EQ(stand_in().allowed & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, 0u);
  EXPECT_NE(stand_in().allowed & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, 0u);
  chosen({3, 1}, MLG_BF16);
  EXPECT_EQ(stand_in().allowed, ~0ULL) << "asked of f32 alone";
}

TEST_F(Products, AnAlgorithmThatFailsIsLeftOut) {
  EXPECT_EQ(chosen({-1, 3, 2, -1}), 2);
  EXPECT_EQ(chosen({4, -1}), 0);
}

TEST_F(Products, WhereAllAlgorithmsFailTheProductIsNamed) {
  EXPECT_EQ(refusal_of([] {
              chosen({-1, -1});
            }),
            "each of the 2 algorithms that cuBLASLt proposes for the product [300, 700] x [700, 500] fails: "
            "cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED (status 13)");
}

}  // namespace
}  // namespace mulligan::cuda
