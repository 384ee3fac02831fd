// Kernels with a planted fault each (planted_kernels.cu): run on the backend under test in every order of threads, which must
// say what is wrong. For one file of a program, since the kernels are functions of that file.
#pragma once

#include <mulligan/cuda_kernel.hpp>

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <span>

#include "tests/kernels/backend_fixture.h"
#include "tests/support/sentence.h"

namespace mulligan::kernel_test::planted {
namespace {

#include "planted_kernels.cu.inc"

constexpr std::int64_t kCount = 256;
constexpr std::array<std::int64_t, 3> kGrid = {kCount / kThreads + 1, 1, 1};

// The signature is the same for all.
struct Planted {
  static constexpr const char* signature = "in x, out y; fault";
  enum Argument : std::uint32_t { x, y };
  enum Attribute : std::uint32_t { fault };
  template <typename Instance>
  static void plan(sdk::CudaCall& call, const Instance& instance) {
    give_fault(call);
    call.launch(instance, kGrid, {kThreads, 1, 1}, call.tensor(x), call.tensor(y), static_cast<int>(kCount));
  }
  static void give_fault(sdk::CudaCall& call) {
    call.constant("fault", static_cast<int>(call.attribute(fault)));
  }
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
struct CopyBlocks : Planted {
  static constexpr const char* name = "planted_copy_blocks";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(copy_blocks)); }
};
struct RoundElements : Planted {
  static constexpr const char* name = "planted_round_elements";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(round_elements)); }
};
struct UnknownInstruction : Planted {
  static constexpr const char* name = "planted_unknown_instruction";
  static void plan(sdk::CudaCall& call) { Planted::plan(call, MLG_INSTANCE(unknown_instruction)); }
};
struct ThroughWorkspace : Planted {
  static constexpr const char* name = "planted_workspace";
  static void plan(sdk::CudaCall& call) {
    give_fault(call);
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
  static constexpr const char* signature = "in x, in y; fault";
  static void plan(sdk::CudaCall& call) { CopyElements::plan(call); }
};

// The backend with these kernels, made once for each variant.
inline BackendFixture& backend(int variant) {
  static const mlg_kernel kernels[] = {
      sdk::cuda_kernel<CopyElements>(kSource),     sdk::cuda_kernel<CopyPacks>(kSource),
      sdk::cuda_kernel<ReverseBlocks>(kSource),    sdk::cuda_kernel<SumWarps>(kSource),
      sdk::cuda_kernel<CopyBlocks>(kSource),       sdk::cuda_kernel<RoundElements>(kSource),
      sdk::cuda_kernel<ThroughWorkspace>(kSource), sdk::cuda_kernel<UnknownInstruction>(kSource),
      sdk::cuda_kernel<WritesItsInput>(kSource)};
  static std::map<int, std::unique_ptr<BackendFixture>> fixtures;
  auto& fixture = fixtures[variant];
  if (!fixture) {
    fixture = std::make_unique<BackendFixture>(backend_under_test(variant));
    sdk::check(fixture->table().add_kernels(fixture->instance(), kernels, std::size(kernels), 0));
  }
  return *fixture;
}

// Element i of x is its lane and a part below 1; y has the dtype `result`.
inline KernelResult run(const std::string& kernel, int number, int variant, mlg_dtype result = MLG_F32) {
  Array x{MLG_F32, {kCount}, {}};
  for (int i = 0; i < kCount; ++i) x.values.push_back(i % 32 + (i + 0.75) / 256);
  Array y = x;
  y.dtype = result;
  return backend(variant).run(kernel_call("planted_" + kernel, "x y", {x, y}, {{"fault", number}}));
}

// What is said about fault `number` of a kernel; "" when it passes.
inline std::string finding(const std::string& kernel, int number, int variant = 1,
                           mlg_dtype result = MLG_F32) {
  return said_by([&] { run(kernel, number, variant, result); });
}

inline void expect_none_found(std::initializer_list<const char*> kernels, mlg_dtype result = MLG_F32) {
  for (const char* kernel : kernels) {
    for (const int variant : {1, 2, 3})
      EXPECT_EQ(finding(kernel, 0, variant, result), "") << kernel << ", order " << variant;
  }
}

// Fault `number` of a kernel, and what is said about it; in some orders of threads something else.
struct PlantedFault {
  const char* what;
  const char* kernel;
  int number;
  const char* said;
  const char* or_said = said;
};

// All of `always` stand in each sentence, too.
inline void expect_each_is_found(std::span<const PlantedFault> faults,
                                 const std::vector<std::string>& always = {}) {
  for (const PlantedFault& fault : faults) {
    for (const int variant : {1, 2, 3}) {
      const std::string found = finding(fault.kernel, fault.number, variant);
      EXPECT_TRUE(found.find(fault.said) != found.npos || found.find(fault.or_said) != found.npos)
          << fault.what << ", order " << variant << ": " << found;
      for (const std::string& part : always) EXPECT_TRUE(contains(found, part)) << fault.what;
    }
  }
}

}  // namespace
}  // namespace mulligan::kernel_test::planted
