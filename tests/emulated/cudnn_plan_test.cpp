// Plans of attention by cuDNN for GPUs that are described, not there: graphs are taken, plans finalised,
// workspace and the naming of tensors laid out. Nothing is executed. Skipped where cuDNN is not installed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "plugins/backends/cuda/gpu/cudnn/attention_plan.h"
#include "tests/support/sentence.h"
#include "tests/support/test_device.h"

namespace mulligan::cuda::cudnn::cudnn_plan_test {
namespace {

// A device by its properties in JSON: what cuDNN writes of an H100. `version` 900: compute capability 9.0.
Descriptor described(const Functions& functions, int version) {
  const std::string v = std::to_string(version);
  const std::string json =
      R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "multiProcessorCount": 132,
"warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
"reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "regsPerBlock": 65536, "maxCtasPerSM": 32,
"maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0, "smClockRateKHz": 1980000,
"memClockRateKHz": 2619000, "l2CacheSize": 52428800, "deviceName": "described", "cudaDeviceId": 0,
"driverVer": 13000, "totalGlobalMem": 85000000000, "supportCoopLaunch": 1, "deviceVer": )" +
      v + R"(, "smVersion": )" + v + "}";
  Descriptor device(functions, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(json));
  device.finalize();
  return device;
}

TEST(SharedLibrary, AMissingFunctionIsNamedWithTheLibrarysOwnRemedy) {
  const plugins::SharedLibrary library("The C library", {"libc.so.6"}, "install glibc");
  EXPECT_EQ(said_by([&] { library.symbol("no_such_function"); }),
            "The C library has no function no_such_function; install glibc");
}

class CudnnPlan : public testing::Test {
#ifdef __SANITIZE_ADDRESS__
  __lsan::ScopedDisabler cudnn_;  // keeps some of its memory to the end
#endif
 protected:
  void SetUp() override {
    if (test_device() != "emulated") GTEST_SKIP() << "plans without a GPU: there is one";
    if (!std::filesystem::exists(MULLIGAN_FAKE_DRIVER))
      GTEST_SKIP() << "plans without a GPU: away from the build";
    ASSERT_TRUE(dlopen(MULLIGAN_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL)) << dlerror();
    try {
      functions_ = std::make_unique<Functions>(LibrarySearch{});
    } catch (const std::runtime_error& error) {
      const std::string_view sentence = error.what();
      const bool missing = sentence.find("was not found (") != sentence.npos ||
                           sentence.find("pip install --upgrade") != sentence.npos;
      if (missing) GTEST_SKIP() << "plans of attention by cuDNN: " << sentence;
      throw;
    }
    device_ = std::make_unique<Descriptor>(described(*functions_, 900));
  }

  std::optional<AttentionPlan> plan(const AttentionShape& shape) {
    reason_.clear();
    return make_attention_plan(*functions_, {.device = device_.get()}, shape, reason_);
  }

  std::unique_ptr<Functions> functions_;
  std::unique_ptr<Descriptor> device_;
  std::string reason_;
};

AttentionShape packed(bool backward, std::int64_t rows, std::int64_t longest) {
  return {.backward = backward,
          .packed = true,
          .tokens = 98304,
          .query_heads = 8,
          .kv_heads = 4,
          .width = 64,
          .rows = rows,
          .longest = longest,
          .scale = 0.125};
}

AttentionShape plain(bool backward, std::int64_t rows, std::int64_t length) {
  AttentionShape shape = packed(backward, rows, length);
  shape.packed = false;
  shape.tokens = rows * length;
  return shape;
}

// The record's: 98,304 tokens, 8 heads over 4 of width 64. Workspace grows with the tokens, not with rows and
// their longest length.
TEST_F(CudnnPlan, PackedDocuments) {
  constexpr std::size_t kTokens = 98304, kSums = kTokens * 8 * 64 * sizeof(float);  // of dq, dk or dv
  for (const auto& [rows, longest] : {std::pair<std::int64_t, std::int64_t>{16, 128}, {2048, 131072}}) {
    const std::optional<AttentionPlan> forward = plan(packed(false, rows, longest));
    ASSERT_TRUE(forward) << rows << " rows of up to " << longest << ": " << reason_;
    EXPECT_LT(forward->workspace_bytes(kTokens), std::size_t{4} << 20);
    const std::optional<AttentionPlan> backward = plan(packed(true, rows, longest));
    ASSERT_TRUE(backward) << rows << " rows of up to " << longest << ": " << reason_;
    EXPECT_GT(backward->workspace_bytes(kTokens), 3 * kSums);
    EXPECT_LT(backward->workspace_bytes(kTokens), 4 * kSums);
  }
}

// What is reserved before a plan is made.
TEST_F(CudnnPlan, WorkspaceIsKnownBeforeThePlan) {
  for (const bool backward : {false, true}) {
    for (const AttentionShape& shape :
         {packed(backward, 64, 2048), packed(backward, 160, 2048), packed(backward, 1536, 131072),
          plain(backward, 96, 1024), plain(backward, 2048, 100)}) {
      const std::optional<AttentionPlan> made = plan(shape);
      ASSERT_TRUE(made) << reason_;
      EXPECT_LE(made->workspace_bytes(shape.tokens), attention_workspace_bytes(shape));
    }
  }
}

TEST_F(CudnnPlan, PlainBatchesOfAnyLength) {
  for (const bool backward : {false, true}) EXPECT_TRUE(plan(plain(backward, 3, 100))) << reason_;
}

TEST_F(CudnnPlan, EveryQueryHeadWithAKeyHeadOfItsOwn) {
  for (const bool backward : {false, true}) {
    AttentionShape shape = packed(backward, 16, 512);
    shape.kv_heads = shape.query_heads;
    shape.width = 48;
    EXPECT_TRUE(plan(shape)) << reason_;
  }
}

TEST_F(CudnnPlan, OfWhatItCannotDoThereIsASentence) {
  AttentionShape shape = packed(true, 16, 512);
  shape.width = 520;
  EXPECT_FALSE(plan(shape));
  EXPECT_TRUE(reason_.starts_with("cuDNN " + functions_->version() + " has no plan for it: ")) << reason_;
  EXPECT_EQ(reason_.find('\n'), reason_.npos) << reason_;
}

// Every tensor of the graph gets an address, and an absent one is noticed.
TEST_F(CudnnPlan, AnExecutionNamesEveryTensor) {
  for (const AttentionShape& shape : {packed(true, 16, 2048), plain(true, 8, 1024)}) {
    std::optional<AttentionPlan> made = plan(shape);
    ASSERT_TRUE(made) << reason_;
    AttentionArguments arguments;
    std::uintptr_t next = 1 << 20;
    for (DeviceArgument* argument :
         {&arguments.q, &arguments.k, &arguments.v, &arguments.o, &arguments.stats, &arguments.d_o,
          &arguments.dq, &arguments.dk, &arguments.dv, &arguments.query_starts, &arguments.kv_starts,
          &arguments.stats_starts, &arguments.lengths}) {
      argument->address = reinterpret_cast<void*>(next += 1 << 20);
    }
    void* workspace = reinterpret_cast<void*>(std::uintptr_t{1} << 32);
    EXPECT_NO_THROW(made->pack(*functions_, arguments, shape.tokens, workspace));
    arguments.stats.address = nullptr;
    EXPECT_THROW(made->pack(*functions_, arguments, shape.tokens, workspace), std::runtime_error);
  }
}

}  // namespace
}  // namespace mulligan::cuda::cudnn::cudnn_plan_test
