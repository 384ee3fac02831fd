// Which of cuBLASLt's algorithms a matmul gets.
#include <cublasLt.h>

#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::matmuls_test {
namespace {

constexpr GemmShape kShape{.m = 300, .n = 500, .k = 700}, kMeasured{.m = 2048, .n = 2048, .k = 1024};

class Matmuls : public StubDevice {
 protected:
  // The algorithm that a matmul runs with, if the proposed ones take these times.
  static int chosen(std::vector<float> milliseconds, mlg_dtype dtype = MLG_F32) {
    stub().milliseconds = std::move(milliseconds);
    GpuDevice gpu = device();
    GemmShape shape = kMeasured;
    shape.input = shape.output = dtype;
    const std::unique_ptr<Gemm> gemm = gpu.gemm(shape);
    DeviceArgument operands[3];
    for (DeviceArgument& operand : operands) {
      operand.address = gpu.allocate(kMeasured.stride_c() * sizeof(float));
      gpu.fill(operand.address, 1, kMeasured.stride_c() * sizeof(float));
    }
    void* workspace = gpu.allocate(gemm->workspace_bytes());
    stub().last_algorithm = -1;
    gemm->run(operands[0], operands[1], operands[2], operands[2], workspace);
    gpu.free(workspace);
    for (const DeviceArgument& operand : operands) gpu.free(operand.address);
    return stub().last_algorithm;
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

// The stub judges: it refuses each wrong call by the argument that is wrong, and nothing works afterwards,
// as on a card.
class Misuse : public StubDevice {
 protected:
  // What the stub says of a matmul of kShape after `spoil` changed the operands and the workspace.
  std::string verdict(void (*spoil)(GpuDevice& gpu, DeviceArgument (&operands)[3], void*& workspace)) {
    reset_stubs();
    GpuDevice gpu = device();
    const std::unique_ptr<Gemm> gemm = gpu.gemm(kShape);
    const std::size_t bytes[] = {300 * 700 * 4, 700 * 500 * 4, 300 * 500 * 4};
    DeviceArgument operands[3];
    for (int i = 0; i < 3; ++i) {
      operands[i].address = gpu.allocate(bytes[i]);
      gpu.fill(operands[i].address, 1, bytes[i]);
    }
    void* workspace = gpu.allocate(gemm->workspace_bytes());
    spoil(gpu, operands, workspace);
    try {
      gemm->run(operands[0], operands[1], operands[2], operands[2], workspace);
    } catch (const std::runtime_error&) {
    }
    const std::string violation = stub().violation;
    if (!violation.empty()) {
      EXPECT_THROW(gpu.synchronize(), std::runtime_error) << "an illegal address is sticky";
    }
    return violation;
  }
};

TEST_F(Misuse, OfAMatmulNamesItsArgument) {
  using Operands = DeviceArgument(&)[3];
  EXPECT_EQ(verdict([](GpuDevice&, Operands, void*&) {}), "");
  EXPECT_EQ(verdict([](GpuDevice& gpu, Operands o, void*&) { o[0].address = gpu.allocate(16); }),
            "cublasLtMatmul: argument B takes 840000 bytes, 0 bytes into an allocation of 16");
  EXPECT_EQ(verdict([](GpuDevice& gpu, Operands o, void*&) { gpu.free(o[1].address); }),
            "cublasLtMatmul: argument A takes 1400000 bytes of an allocation of 1400000 that was freed");
  EXPECT_EQ(
      verdict([](GpuDevice&, Operands o, void*&) { o[2].address = static_cast<char*>(o[2].address) + 64; }),
      "cublasLtMatmul: argument C takes 600000 bytes, 64 bytes into an allocation of 600000");
  static char host[700 * 500 * 4];
  EXPECT_EQ(verdict([](GpuDevice&, Operands o, void*&) { o[1].address = host; }),
            "cublasLtMatmul: argument A takes 1400000 bytes where nothing was allocated");
  EXPECT_EQ(verdict([](GpuDevice& gpu, Operands, void*& workspace) { workspace = gpu.allocate(1024); }),
            "cublasLtMatmul: argument workspace takes 33554432 bytes, 0 bytes into an allocation of 1024");
  EXPECT_EQ(verdict([](GpuDevice&, Operands, void*& workspace) { workspace = nullptr; }),
            "cublasLtMatmul: argument workspace takes 33554432 bytes where nothing was allocated");
}

TEST_F(Misuse, OfCopiesNamesThem) {
  GpuDevice gpu = device();
  auto* memory = static_cast<char*>(gpu.allocate(100));
  gpu.fill(memory, 0, 100);
  EXPECT_EQ(stub().violation, "");
  EXPECT_THROW((gpu.fill(memory + 1, 0, 100), gpu.synchronize()), std::runtime_error);
  EXPECT_EQ(stub().violation,
            "cuMemsetD8Async: argument address takes 100 bytes, 1 bytes into an allocation of 100");
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
