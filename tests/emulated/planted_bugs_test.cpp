// The emulated device finds what a GPU would only sometimes show: kernels with planted faults are refused with the
// reason, and the same kernels without the fault pass in every order of threads.
#include "tests/kernels/planted_kernels.h"

namespace mulligan::kernel_test::planted {
namespace {

TEST(PlantedBugs, NoneFoundWhereNoneIs) {
  expect_none_found({"copy_elements", "copy_packs", "reverse_blocks", "sum_warps", "workspace"});
}

constexpr PlantedFault kFaults[] = {
    {"a tail one too long", "copy_elements", 1, "reads 4 bytes at byte 1024 of x, which has 1024 bytes"},
    {"a tail one too short", "copy_elements", 2, "left out of its output y byte 1020 of 1024"},
    {"a wrong stride", "copy_elements", 3, "of x, which has 1024 bytes"},
    {"an unaligned pack", "copy_packs", 1, "not aligned"},
    {"a write to an input", "input", 0, "writes y, which the kernel's signature does not allow"},
    // The element is already written, by another thread and unordered, or not yet.
    {"no barrier before reading", "reverse_blocks", 1, "wrote since the last barrier", "has not written"},
    {"no barrier before writing again", "reverse_blocks", 2, "since the last barrier"},
    {"a barrier that half of the threads reach", "reverse_blocks", 3, "divergent barrier"},
    {"threads that leave before a barrier", "reverse_blocks", 4, "divergent barrier"},
    {"shared memory that nobody wrote", "reverse_blocks", 5,
     "of shared memory, which its block has not written"},
    {"halves at different barriers", "reverse_blocks", 6, "divergent barrier"},
    {"a mask that misses its caller", "sum_warps", 1, "mask misses its caller"},
    {"a mask that names lanes that do not come", "sum_warps", 2, "lanes that do not come"},
    {"a shuffle from a lane outside of the mask", "sum_warps", 3, "takes no part in it"},
    {"lanes that name different masks", "sum_warps", 4, "disagree"},
    {"workspace that nobody wrote", "workspace", 1, "of the workspace, which nothing has written"}};

TEST(PlantedBugs, EachIsFoundInEveryOrder) {
  expect_each_is_found(kFaults);
}

}  // namespace
}  // namespace mulligan::kernel_test::planted
