// The PTX executor finds what a GPU would only sometimes show, and says where; and the same kernels without the fault pass
// in every order.
#include <mulligan/cuda_kernel.hpp>

#include <gtest/gtest.h>

#include <array>

#include "tests/kernels/planted_kernels.h"

namespace mulligan::kernel_test {
namespace {

#include "planted_faults.cu.inc"

constexpr std::int64_t kCount = 256;
constexpr std::array<std::int64_t, 3> kGrid = {kCount / kThreads, 1, 1};

struct Planted {
  static constexpr const char* signature = "in x, out y; fault";
  enum Argument : std::uint32_t { x, y };
  enum Attribute : std::uint32_t { fault };
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
  static const mlg_kernel kernels[] = {
      sdk::cuda_kernel<ReverseBlocks>(kSource), sdk::cuda_kernel<SumWarps>(kSource),
      sdk::cuda_kernel<CopyBlocks>(kSource), sdk::cuda_kernel<RoundElements>(kSource),
      sdk::cuda_kernel<UnknownInstruction>(kSource)};
  return backend_with_kernels(kernels, variant);
}

KernelResult run(const std::string& kernel, int number, int variant, mlg_dtype result = MLG_F32) {
  Array x{MLG_F32, {kCount}, {}};
  for (int i = 0; i < kCount; ++i) x.values.push_back(i % 32 + (i + 0.75) / 256);
  return backend(variant).run(
      kernel_call("faulty_" + kernel, "x y", {x, {result, {kCount}, {}}}, {{"fault", number}}));
}

// What the executor says about fault `number` of a kernel; "" when it passes.
std::string finding(const std::string& kernel, int number, int variant = 1, mlg_dtype result = MLG_F32) {
  return said_by([&] { run(kernel, number, variant, result); });
}

TEST(PlantedFaults, NoneFoundWhereNoneIs) {
  for (const int variant : {1, 2, 3}) {
    for (const char* kernel : {"reverse_blocks", "sum_warps", "copy_blocks"})
      EXPECT_EQ(finding(kernel, 0, variant), "") << kernel << ", order " << variant;
    EXPECT_EQ(finding("round_elements", 0, variant, MLG_BF16), "");
  }
}

constexpr PlantedFault kFaults[] = {
    {"no barrier before reading", "reverse_blocks", 1, "wrote since the last barrier",
     "which its block has not written"},
    {"no barrier before writing again", "reverse_blocks", 2, "since the last barrier"},
    {"a barrier that half of the warps reach", "reverse_blocks", 3, "divergent barrier"},
    {"shared memory that nobody wrote", "reverse_blocks", 4,
     "of shared memory, which its block has not written"},
    {"one past the end of a shared array", "reverse_blocks", 5, "byte 256 of the shared "},
    {"one past the end of an input", "reverse_blocks", 6,
     "reads 4 bytes at byte 1024 of x, which has 1024 bytes"},
    // The next block's element is written twice before.
    {"one past the end of an output", "reverse_blocks", 7,
     "writes 4 bytes at byte 1024 of y, which has 1024 bytes", "writes in the same launch"},
    {"a shuffle in divergent code", "sum_warps", 1, "a warp operation waits for lanes that do not come"},
    {"a mask that misses its caller", "sum_warps", 2, "a mask that misses its caller"},
    {"a shuffle from a lane that takes no part", "sum_warps", 3, "which takes no part in it"},
    {"a shuffle with lanes that have ended", "sum_warps", 4, "has ended"},
    {"two blocks write one element", "copy_blocks", 1, "writes in the same launch"},
    {"a block reads what another writes", "copy_blocks", 2, "in the same launch",
     "which nothing has written"},
    {"a thread reads what another of its block writes", "copy_blocks", 3, "wrote since the last barrier"}};

// With the line and its text, thread and block.
TEST(PlantedFaults, EachIsFoundInEveryOrder) {
  const auto said = [](const std::string& kernel, int number, int variant) {
    return finding(kernel, number, variant);
  };
  expect_each_is_found(kFaults, said, {", line ", "of block ("});
}

// The CPU's compiler sees a kernel that rounds to nearest; NVRTC one that does not.
TEST(PlantedFaults, ConversionThatRoundsTheWrongWay) {
  const KernelResult right = run("round_elements", 0, 1, MLG_BF16),
                     wrong = run("round_elements", 1, 1, MLG_BF16);
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
  EXPECT_EQ(finding("unknown_instruction", 0), "");
  const std::string found = finding("unknown_instruction", 1);
  for (const char* part : {"unknown_instruction", ", line ", "the instruction add.sat.f32 is not known"})
    EXPECT_NE(found.find(part), std::string::npos) << "said: " << found;
}

}  // namespace
}  // namespace mulligan::kernel_test
