// The PTX executor finds what a GPU would only sometimes show, and says where; and the same kernels without the fault pass
// in every order.
#include <mulligan/cuda_kernel.hpp>

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>

#include "tests/kernels/backend_fixture.h"

namespace mulligan::kernel_test {
namespace {

#include "tests/ptx/planted_faults.cu"

constexpr std::int64_t kCount = 256;
constexpr std::array<std::int64_t, 3> kGrid = {kCount / kThreads, 1, 1};

struct Planted {
  static constexpr const char* signature = "in x, out y; fault";
  enum Argument : std::uint32_t { x, y };
  enum Attribute : std::uint32_t { fault };
  static constexpr const char* source =
#include "planted_faults.cu.inc"
      ;
  template <typename Instance>
  static void plan(sdk::CudaCall& call, const Instance& instance) {
    call.constant("fault", static_cast<int>(call.attribute(fault)));
    call.launch(instance, kGrid, {kThreads, 1, 1}, call.tensor(x), call.tensor(y), static_cast<int>(kCount));
  }
};
struct ReverseBlocks : Planted {
  static constexpr const char* name = "faulty_reverse_blocks";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(reverse_blocks)); }
};
struct SumWarps : Planted {
  static constexpr const char* name = "faulty_sum_warps";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(sum_warps)); }
};
struct CopyBlocks : Planted {
  static constexpr const char* name = "faulty_copy_blocks";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(copy_blocks)); }
};
struct RoundElements : Planted {
  static constexpr const char* name = "faulty_round_elements";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(round_elements)); }
};
struct UnknownInstruction : Planted {
  static constexpr const char* name = "faulty_unknown_instruction";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(unknown_instruction)); }
};

BackendFixture& backend(int variant) {
  static const mlg_kernel kernels[] = {sdk::cuda_kernel<ReverseBlocks>(), sdk::cuda_kernel<SumWarps>(),
                                       sdk::cuda_kernel<CopyBlocks>(), sdk::cuda_kernel<RoundElements>(),
                                       sdk::cuda_kernel<UnknownInstruction>()};
  static std::map<int, std::unique_ptr<BackendFixture>> fixtures;
  auto& fixture = fixtures[variant];
  if (!fixture) {
    fixture = std::make_unique<BackendFixture>(backend_under_test(variant));
    sdk::check(fixture->table().add_kernels(fixture->instance(), kernels, std::size(kernels), 0));
  }
  return *fixture;
}

KernelResult run(const char* kernel, int number, int variant, mlg_dtype result = MLG_F32) {
  Array x{MLG_F32, {kCount}, {}};
  for (int i = 0; i < kCount; ++i) x.values.push_back(i % 32 + (i + 0.75) / 256);
  return backend(variant).run({.kernel = kernel,
                               .arguments = {{"x", x}, {"y", {result, {kCount}, {}}}},
                               .attributes = {{"fault", number}},
                               .aliases = {}});
}

// What the executor says about fault `number` of a kernel; "" when it passes.
std::string finding(const char* kernel, int number, int variant = 1, mlg_dtype result = MLG_F32) {
  try {
    run(kernel, number, variant, result);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

// In every order, with the line and its text, thread and block.
#define EXPECT_FOUND(kernel, number, text)                                                       \
  for (const int variant : {1, 2, 3}) {                                                          \
    const std::string found = finding(kernel, number, variant);                                  \
    EXPECT_NE(found.find(text), std::string::npos) << "order " << variant << " said: " << found; \
    EXPECT_NE(found.find(", line "), std::string::npos) << found;                                \
    EXPECT_NE(found.find("of block ("), std::string::npos) << found;                             \
  }                                                                                              \
  static_assert(true)

TEST(PlantedFaults, NoneFoundWhereNoneIs) {
  for (const int variant : {1, 2, 3}) {
    for (const char* kernel : {"faulty_reverse_blocks", "faulty_sum_warps", "faulty_copy_blocks"})
      EXPECT_EQ(finding(kernel, 0, variant), "") << kernel << ", order " << variant;
    EXPECT_EQ(finding("faulty_round_elements", 0, variant, MLG_BF16), "");
  }
}
TEST(PlantedFaults, MissingBarrierBeforeReading) {
  for (const int variant : {1, 2, 3}) {
    // In some orders the element is not written yet.
    const std::string found = finding("faulty_reverse_blocks", 1, variant);
    EXPECT_TRUE(found.find("wrote since the last barrier") != found.npos ||
                found.find("which its block has not written") != found.npos)
        << found;
  }
}
TEST(PlantedFaults, MissingBarrierBeforeWritingAgain) {
  EXPECT_FOUND("faulty_reverse_blocks", 2, "since the last barrier");
}
TEST(PlantedFaults, BarrierThatHalfOfTheWarpsReach) {
  EXPECT_FOUND("faulty_reverse_blocks", 3, "divergent barrier");
}
TEST(PlantedFaults, SharedMemoryThatNobodyWrote) {
  EXPECT_FOUND("faulty_reverse_blocks", 4, "of shared memory, which its block has not written");
}
TEST(PlantedFaults, IndexOnePastTheEndOfASharedArray) {
  EXPECT_FOUND("faulty_reverse_blocks", 5, "byte 256 of the shared ");
}
TEST(PlantedFaults, IndexOnePastTheEndOfAnInput) {
  EXPECT_FOUND("faulty_reverse_blocks", 6, "reads 4 bytes at byte 1024 of x, which has 1024 bytes");
}
TEST(PlantedFaults, IndexOnePastTheEndOfAnOutput) {
  for (const int variant : {1, 2, 3}) {
    // In some orders the next block's element is written twice before.
    const std::string found = finding("faulty_reverse_blocks", 7, variant);
    EXPECT_TRUE(found.find("writes 4 bytes at byte 1024 of y, which has 1024 bytes") != found.npos ||
                found.find("writes in the same launch") != found.npos)
        << found;
  }
}
TEST(PlantedFaults, ShuffleInDivergentCode) {
  EXPECT_FOUND("faulty_sum_warps", 1, "a warp operation waits for lanes that do not come");
}
TEST(PlantedFaults, MaskThatMissesItsCaller) {
  EXPECT_FOUND("faulty_sum_warps", 2, "a mask that misses its caller");
}
TEST(PlantedFaults, ShuffleFromALaneThatTakesNoPart) {
  EXPECT_FOUND("faulty_sum_warps", 3, "which takes no part in it");
}
TEST(PlantedFaults, ShuffleWithLanesThatHaveEnded) {
  EXPECT_FOUND("faulty_sum_warps", 4, "has ended");
}
TEST(PlantedFaults, TwoBlocksWriteOneElement) {
  EXPECT_FOUND("faulty_copy_blocks", 1, "writes in the same launch");
}
TEST(PlantedFaults, ABlockReadsWhatAnotherWrites) {
  for (const int variant : {1, 2, 3}) {
    const std::string found = finding("faulty_copy_blocks", 2, variant);
    EXPECT_TRUE(found.find("in the same launch") != found.npos ||
                found.find("which nothing has written") != found.npos)
        << found;
  }
}
TEST(PlantedFaults, AThreadReadsWhatAnotherOfItsBlockWrites) {
  EXPECT_FOUND("faulty_copy_blocks", 3, "wrote since the last barrier");
}

// The CPU's compiler sees a kernel that rounds to nearest; NVRTC one that does not.
TEST(PlantedFaults, ConversionThatRoundsTheWrongWay) {
  const KernelResult right = run("faulty_round_elements", 0, 1, MLG_BF16),
                     wrong = run("faulty_round_elements", 1, 1, MLG_BF16);
  int differing = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double x = static_cast<double>(i % 32) + (static_cast<double>(i) + 0.75) / 256;
    EXPECT_EQ(right.written.at("y").values[i], round_to(MLG_BF16, x));
    EXPECT_LE(wrong.written.at("y").values[i], x);
    differing += wrong.written.at("y").values[i] != right.written.at("y").values[i];
  }
  EXPECT_GT(differing, kCount / 4);
}

TEST(PlantedFaults, AnInstructionThatIsNotKnownIsNamed) {
  EXPECT_EQ(finding("faulty_unknown_instruction", 0), "");
  const std::string found = finding("faulty_unknown_instruction", 1);
  for (const char* part : {"unknown_instruction", ", line ", "the instruction add.sat.f32 is not known"})
    EXPECT_NE(found.find(part), std::string::npos) << "said: " << found;
}

}  // namespace
}  // namespace mulligan::kernel_test
