// The PTX executor finds what a GPU would only sometimes show, and says where; and the same kernels without the fault pass
// in every order.
#include "tests/kernels/planted_kernels.h"

namespace mulligan::kernel_test::planted {
namespace {

TEST(PlantedFaults, NoneFoundWhereNoneIs) {
  expect_none_found({"reverse_blocks", "sum_warps", "copy_blocks"});
  expect_none_found({"round_elements"}, MLG_BF16);
}

constexpr PlantedFault kFaults[] = {
    {"no barrier before reading", "reverse_blocks", 1, "wrote since the last barrier",
     "which its block has not written"},
    {"no barrier before writing again", "reverse_blocks", 2, "since the last barrier"},
    {"a barrier that half of the warps reach", "reverse_blocks", 3, "divergent barrier"},
    {"shared memory that nobody wrote", "reverse_blocks", 5,
     "of shared memory, which its block has not written"},
    {"one past the end of a shared array", "reverse_blocks", 7, "byte 256 of the shared "},
    {"one past the end of an input", "reverse_blocks", 8,
     "reads 4 bytes at byte 1024 of x, which has 1024 bytes"},
    // The next block's element is written twice before.
    {"one past the end of an output", "reverse_blocks", 9,
     "writes 4 bytes at byte 1024 of y, which has 1024 bytes", "writes in the same launch"},
    {"a mask that misses its caller", "sum_warps", 1, "a mask that misses its caller"},
    {"a shuffle in divergent code", "sum_warps", 2, "a warp operation waits for lanes that do not come"},
    {"a shuffle from a lane that takes no part", "sum_warps", 3, "which takes no part in it"},
    {"a shuffle with lanes that have ended", "sum_warps", 5, "has ended"},
    {"two blocks write one element", "copy_blocks", 1, "writes in the same launch"},
    {"a block reads what another writes", "copy_blocks", 2, "in the same launch",
     "which nothing has written"},
    {"a thread reads what another of its block writes", "copy_blocks", 3, "wrote since the last barrier"}};

// With the line and its text, thread and block.
TEST(PlantedFaults, EachIsFoundInEveryOrder) {
  expect_each_is_found(kFaults, {", line ", "of block ("});
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
  EXPECT_TRUE(contains(finding("unknown_instruction", 1), "unknown_instruction", ", line ",
                       "the instruction add.sat.f32 is not known"));
}

}  // namespace
}  // namespace mulligan::kernel_test::planted
