// How often cuBLASLt's algorithms are timed: once for a class of matmuls, by one rank of a machine, and never
// for a matmul too small to tell them apart.
#include <cublasLt.h>

#include <filesystem>

#include "plugins/backends/cuda/gpu/cublaslt_gemm.h"
#include "tests/gpu_device/stub_device.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::cuda::measurements_test {
namespace {

constexpr GemmShape kLarge{.m = 2048, .n = 1024, .k = 2048, .input = MLG_BF16, .output = MLG_BF16};

class Measurements : public StubDevice {
 protected:
  // Matmuls whose algorithms were timed since the start of the test.
  static int measured() { return stub().timed / static_cast<int>(stub().milliseconds.size()); }
  // The algorithm that a matmul of this shape runs with.
  static int algorithm(GpuDevice& gpu, const GemmShape& shape) {
    const std::unique_ptr<Gemm> gemm = gpu.gemm(shape);
    return algorithm_of_run(gpu, *gemm, shape);
  }
  test_support::ScratchFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path();
};

TEST_F(Measurements, AreMadeOnceForAClass) {
  GpuDevice gpu = device();
  stub().milliseconds = {3, 1, 2};
  for (const std::int64_t m : {2048, 1900, 1600, 2048, 1100}) {
    GemmShape shape = kLarge;
    shape.m = m;
    shape.n = 2048;
    EXPECT_EQ(algorithm(gpu, shape), 1) << m;
  }
  EXPECT_EQ(measured(), 1);
  GemmShape other = kLarge;
  other.n = 3000;
  algorithm(gpu, other);
  EXPECT_EQ(measured(), 2);
}

// If a class's algorithm does not fit one of its matmuls, it is not run on that one.
TEST_F(Measurements, OfAClassAreCheckedForTheMatmul) {
  GpuDevice gpu = device();
  stub().milliseconds = {3, 1, 2};
  EXPECT_EQ(algorithm(gpu, kLarge), 1);
  stub().refused_algorithm = 1;
  EXPECT_EQ(algorithm(gpu, kLarge), 0) << "the library's first proposal";
  EXPECT_EQ(measured(), 1);
}

TEST_F(Measurements, OfSmallMatmulsAreNotMade) {
  GpuDevice gpu = device();
  stub().milliseconds = {3, 1, 2};
  EXPECT_EQ(algorithm(gpu, {.m = 300, .n = 500, .k = 700}), 0);
  EXPECT_EQ(measured(), 0);
}

// Test-time training prepares about 90,000 small matmuls of about 2,000 shapes.
TEST_F(Measurements, AskForTheProposalsOfAShapeOnce) {
  GpuDevice gpu = device();
  for (int call = 0; call < 100; ++call) {
    for (const std::int64_t m : {48, 96, 300}) {
      for (const double beta : {0.0, 1.0})
        gpu.gemm({.m = m, .n = 500, .k = 700, .beta = beta, .input = MLG_BF16});
    }
  }
  EXPECT_EQ(stub().requests, 3);
  gpu.gemm({.m = 48, .n = 500, .k = 700, .transpose_a = true, .input = MLG_BF16});
  gpu.gemm({.m = 48, .n = 500, .k = 700});
  EXPECT_EQ(stub().requests, 5);
}

// Measuring a class needs the proposals, and so does a shape of it that the class's algorithm does not compute.
TEST_F(Measurements, OfAClassShareTheRequestsForProposals) {
  GpuDevice gpu = device();
  stub().refused_algorithm = 1;
  for (int call = 0; call < 10; ++call) EXPECT_EQ(algorithm(gpu, kLarge), 0);
  EXPECT_EQ(measured(), 1);
  EXPECT_EQ(stub().requests, 1);
}

TEST_F(Measurements, TimeShortMatmulsMoreOften) {
  GpuDevice gpu = device();
  gpu.gemm(kLarge);
  EXPECT_EQ(stub().timed_matmuls, 58) << "8.6e9 operations, some 15 us";
  gpu.gemm({.m = 8192, .n = 2048, .k = 1024, .input = MLG_BF16, .output = MLG_BF16});
  EXPECT_EQ(stub().timed_matmuls, 14);
}

// Sums over parts of k stay in f32 until they are rounded to the output, once.
TEST_F(Measurements, LeaveOutWhatRoundsPartialSums) {
  GpuDevice gpu = device();
  gpu.gemm(kLarge);
  EXPECT_EQ(stub().reduction_schemes, unsigned{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  GemmShape wide = kLarge;
  wide.output = MLG_F32;
  gpu.gemm(wide);
  EXPECT_EQ(stub().reduction_schemes, unsigned{CUBLASLT_REDUCTION_SCHEME_MASK});
}

// What was measured among other algorithms is not taken from the cache.
TEST_F(Measurements, AreOfWhatTheLibraryMayPropose) {
  const AllowedAlgorithms allowed = allowed_algorithms(kLarge);
  EXPECT_EQ(allowed.reductions, unsigned{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  AllowedAlgorithms more = allowed, tf32 = allowed;
  more.reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  tf32.arithmetic = 0;
  const std::string key = algorithm_key("a GPU", kLarge, allowed);
  EXPECT_EQ(key, algorithm_key("a GPU", kLarge, allowed));
  EXPECT_NE(key, algorithm_key("a GPU", kLarge, more));
  EXPECT_NE(key, algorithm_key("a GPU", kLarge, tf32));
}

TEST_F(Measurements, AreCounted) {
  GpuDevice gpu(0, folder_.string()), other(0, folder_.string());
  algorithm(gpu, kLarge);
  algorithm(other, kLarge);
  EXPECT_EQ(gpu.made().measurements, 1U);
  EXPECT_EQ(other.made().measurements, 0U) << "read";
}

// Eight ranks of a machine measure each class once between them.
TEST_F(Measurements, AreSharedByTheRanksOfAMachine) {
  for (int rank = 0; rank < 8; ++rank) {
    GpuDevice gpu(0, folder_.string());
    algorithm(gpu, kLarge);
    EXPECT_EQ(gpu.measured().find("algorithms of matmuls: " + std::string(rank == 0 ? "1" : "0")), 0u)
        << gpu.measured();
  }
  EXPECT_EQ(measured(), 1);
}

// No rank waits for a measurement before it needs it.
TEST_F(Measurements, ThatAnotherRankIsAtAreNotWaitedFor) {
  GpuDevice first(0, folder_.string()), second(0, folder_.string());
  std::unique_ptr<Gemm> meanwhile;
  stub().on_matmul = [&] {
    meanwhile = second.gemm(kLarge);
    EXPECT_EQ(stub().timed, 0) << "nor made twice";
  };
  first.gemm(kLarge);
  ASSERT_NE(meanwhile, nullptr);
  EXPECT_EQ(algorithm_of_run(second, *meanwhile, kLarge), 1);
  EXPECT_EQ(measured(), 1);
}

TEST_F(Measurements, AreSharedThoughTheCacheCannotBeWritten) {
  setenv("TMPDIR", folder_.c_str(), 1);
  for (int rank = 0; rank < 3; ++rank) {
    GpuDevice gpu(0, "/dev/null/none");
    for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(algorithm(gpu, kLarge), 1);
  }
  unsetenv("TMPDIR");
  EXPECT_EQ(measured(), 1);
}

// A folder that somebody else could write is no place to take algorithms from.
TEST_F(Measurements, AreNotTakenFromAFolderOfOthers) {
  setenv("TMPDIR", folder_.c_str(), 1);
  const std::filesystem::path open = folder_ / ("mulligan-products-" + std::to_string(getuid()));
  std::filesystem::create_directory(open);
  std::filesystem::permissions(open, std::filesystem::perms::all);
  for (int rank = 0; rank < 2; ++rank) {
    GpuDevice gpu(0, "/dev/null/none");
    for (int twice = 0; twice < 2; ++twice) algorithm(gpu, kLarge);
  }
  unsetenv("TMPDIR");
  EXPECT_EQ(measured(), 2) << "once in each process";
  EXPECT_TRUE(std::filesystem::is_empty(open));
}

}  // namespace
}  // namespace mulligan::cuda::measurements_test
