// The emulated device finds what a GPU would only sometimes show: kernels with planted bugs (planted_bugs.cu)
// are refused with the reason, and the same kernels without the bug pass in every order of threads.
#include <mulligan/cuda_kernel.hpp>

#include <gtest/gtest.h>

#include "tests/kernels/planted_kernels.h"

namespace mulligan::kernel_test::planted_bugs_test {
namespace {

#include "tests/emulated/planted_bugs.cu"

constexpr const char* kNoSource = "the emulated device needs none";
constexpr std::int64_t kCount = 256;
constexpr std::array<std::int64_t, 3> kGrid = {kCount / kThreads + 1, 1, 1};

// Kernels of planted_bugs.cu as kernels of the backend; the signature is the same for all.
struct Planted {
  static constexpr const char* signature = "in x, out y; bug";
  enum Argument : std::uint32_t { x, y };
  enum Attribute : std::uint32_t { bug };
  template <typename Instance>
  static void plan(sdk::CudaCall& call, const Instance& instance) {
    give_bug(call);
    call.launch(instance, kGrid, {kThreads, 1, 1}, call.tensor(x), call.tensor(y), static_cast<int>(kCount));
  }
  static void give_bug(sdk::CudaCall& call) { call.constant("bug", static_cast<int>(call.attribute(bug))); }
};

struct CopyElements : Planted {
  static constexpr const char* name = "planted_copy_elements";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(copy_elements)); }
};
struct CopyPacks : Planted {
  static constexpr const char* name = "planted_copy_packs";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(copy_packs)); }
};
struct ReverseBlocks : Planted {
  static constexpr const char* name = "planted_reverse_blocks";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(reverse_blocks)); }
};
struct SumWarps : Planted {
  static constexpr const char* name = "planted_sum_warps";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(sum_warps)); }
};
struct ThroughWorkspace : Planted {
  static constexpr const char* name = "planted_workspace";
  static void plan(sdk::CudaCall& call) {
    give_bug(call);
    const sdk::CudaArgument workspace = call.floats(kCount);
    call.launch(MLG_INSTANCE(fill_workspace), kGrid, {kThreads, 1, 1}, call.tensor(x), workspace,
                static_cast<int>(kCount));
    call.launch(MLG_INSTANCE(read_workspace), kGrid, {kThreads, 1, 1}, workspace, call.tensor(y),
                static_cast<int>(kCount));
  }
};
// Its signature promises to read y only.
struct WritesItsInput {
  static constexpr const char* name = "planted_input";
  static constexpr const char* signature = "in x, in y; bug";
  static void plan(sdk::CudaCall& call) { CopyElements::plan(call); }
};

BackendFixture& backend(int variant) {
  static const mlg_kernel kernels[] = {
      sdk::cuda_kernel<CopyElements>(kNoSource),     sdk::cuda_kernel<CopyPacks>(kNoSource),
      sdk::cuda_kernel<ReverseBlocks>(kNoSource),    sdk::cuda_kernel<SumWarps>(kNoSource),
      sdk::cuda_kernel<ThroughWorkspace>(kNoSource), sdk::cuda_kernel<WritesItsInput>(kNoSource)};
  return backend_with_kernels(kernels, variant);
}

// What the emulated device says about bug `number` of a kernel; "" when it passes.
std::string finding(const std::string& kernel, int number, int variant) {
  Array x{MLG_F32, {kCount}, {}};
  for (int i = 0; i < kCount; ++i) x.values.push_back(i);
  return said_by([&] {
    backend(variant).run(kernel_call("planted_" + kernel, "x y", {x, x}, {{"bug", number}}));
  });
}

TEST(PlantedBugs, NoneFoundWhereNoneIs) {
  for (const char* kernel : {"copy_elements", "copy_packs", "reverse_blocks", "sum_warps", "workspace"}) {
    for (const int variant : {1, 2, 3})
      EXPECT_EQ(finding(kernel, 0, variant), "") << kernel << ", order " << variant;
  }
}

constexpr PlantedFault kBugs[] = {
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
  expect_each_is_found(kBugs, finding);
}

}  // namespace
}  // namespace mulligan::kernel_test::planted_bugs_test
