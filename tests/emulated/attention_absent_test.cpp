// Where a device has no library of attention, or none for a shape: one sentence each, and the own kernel.
#include <gtest/gtest.h>

#include <mulligan/plugin.hpp>

#include "plugins/backends/cuda/attention/attention_library.h"
#include "plugins/backends/cuda_emulated/emulated_device.h"
#include "tests/support/sentence.h"

namespace mulligan::cuda::attention_absent_test {
namespace {

std::vector<std::string> said;

class Without final : public EmulatedDevice {
 public:
  Without(std::string missing, std::string no_plan)
      : EmulatedDevice(EmulatedOrder::forward), missing_(std::move(missing)), no_plan_(std::move(no_plan)) {}
  std::string attention_missing() override {
    ++asked;
    return missing_;
  }
  std::optional<std::size_t> attention_workspace_bytes(const AttentionShape&, std::string& reason) override {
    reason = no_plan_;
    return std::nullopt;
  }
  std::unique_ptr<Attention> attention(const AttentionShape&, std::string& reason) override {
    ++planned;
    reason = no_plan_;
    return nullptr;
  }
  int asked = 0, planned = 0;

 private:
  std::string missing_, no_plan_;
};

class AttentionAbsent : public testing::Test {
 protected:
  void SetUp() override {
    said.clear();
    static constexpr mlg_host host{.log = [](std::int32_t, const char* line) { said.emplace_back(line); },
                                   .running = nullptr};
    before_ = std::exchange(sdk::host_services, &host);
  }
  void TearDown() override { sdk::host_services = before_; }

 private:
  const mlg_host* before_ = nullptr;
};

AttentionShape shape(std::int64_t rows) {
  return {.tokens = 64 * rows, .query_heads = 2, .kv_heads = 1, .width = 16, .rows = rows, .longest = 64};
}

TEST_F(AttentionAbsent, NoLibraryIsSaidOnce) {
  Without device("cuDNN was not found (libcudnn.so.9); install cuDNN 9.18.1 or newer", "");
  AttentionLibrary library(device, {});
  EXPECT_FALSE(library.wanted(shape(1)));
  EXPECT_FALSE(library.wanted(shape(2)));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0],
            "bf16 attention: cuDNN was not found (libcudnn.so.9); install cuDNN 9.18.1 or newer; "
            "the own kernel computes it, without tensor cores: a step that is mostly attention "
            "takes about ten times as long (or set backend.attention = \"own\" to be told no more)");
  EXPECT_EQ(device.asked, 1);
}

TEST_F(AttentionAbsent, WhoWantsTheOwnKernelIsNotToldOfALibrary) {
  Without device("missing", "");
  AttentionLibrary own(device, {.library = false});
  EXPECT_FALSE(own.wanted(shape(1)));
  AttentionShape f32 = shape(1), backward = shape(1);
  f32.dtype = MLG_F32;
  backward.backward = true;
  AttentionLibrary deterministic(device, {.deterministic = true});
  EXPECT_FALSE(deterministic.wanted(f32));
  EXPECT_FALSE(deterministic.wanted(backward));
  EXPECT_EQ(device.asked, 0);
  EXPECT_TRUE(said.empty());
}

TEST_F(AttentionAbsent, ADirectionThatTheLibraryDoesNotHaveIsSaidOnce) {
  Without device("", "cuDNN reads no packed statistics on GPUs of compute capability 8.x");
  AttentionLibrary library(device, {});
  EXPECT_FALSE(library.workspace_bytes(shape(3)));
  EXPECT_FALSE(library.workspace_bytes(shape(3)));
  EXPECT_EQ(device.planned, 0);
  EXPECT_EQ(said.size(), 1u);
}

TEST_F(AttentionAbsent, NoPlanIsSaidOncePerShape) {
  Without device("", "cuDNN 9.19.0 has no plan for it: it proposes no engine");
  AttentionLibrary library(device, {});
  ASSERT_TRUE(library.wanted(shape(3)));
  EXPECT_EQ(library.plan(shape(3)), nullptr);
  EXPECT_EQ(library.plan(shape(3)), nullptr);
  EXPECT_EQ(device.planned, 1);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(
      said[0],
      "bf16 attention, forward, of 192 tokens in 3 rows of 64, 2 heads over 1 of width 16: cuDNN 9.19.0 has "
      "no plan for it: it proposes no engine; the own kernel computes it, without tensor cores: a step that "
      "is mostly attention takes about ten times as long");
}

// A run that requires the library is refused for whatever keeps it from being used, and when it is first known.
TEST_F(AttentionAbsent, ARequiredLibraryIsRefusedWhereItIsMissing) {
  const auto refused = [](Without& device, auto&& act) {
    AttentionLibrary library(device, {.required = true});
    return said_by([&] { act(library); });
  };
  Without missing("cuDNN was not found", ""), without_plans("", "cuDNN has no plan for it");
  for (const std::string& text :
       {refused(missing, [](AttentionLibrary& library) { library.wanted(shape(3)); }),
        refused(without_plans, [](AttentionLibrary& library) { library.workspace_bytes(shape(3)); }),
        refused(without_plans, [](AttentionLibrary& library) { library.plan(shape(3)); }),
        refused(without_plans, [](AttentionLibrary& library) {
          library.expect(shape(3));
          library.finish_expected();
        })}) {
    EXPECT_TRUE(contains(text, "requires the device's library of attention (run.require_libraries",
                         "about ten times as long"));
  }
  // A call that needs the own kernel by its nature is no error.
  AttentionLibrary library(missing, {.required = true});
  AttentionShape f32 = shape(1);
  f32.dtype = MLG_F32;
  EXPECT_FALSE(library.wanted(f32));
}

AttentionShape other(mlg_dtype dtype, std::int64_t width, std::int64_t tokens = 64) {
  AttentionShape shape{
      .tokens = tokens, .query_heads = 2, .kv_heads = 1, .width = width, .rows = 1, .longest = 64};
  shape.dtype = dtype;
  return shape;
}

// What the library is never asked for is told as well, once for both directions, without a look for a library.
TEST_F(AttentionAbsent, WhatTheLibraryIsNeverAskedForIsSaidOnce) {
  Without device("cuDNN was not found", "");
  const std::pair<AttentionShape, const char*> unfit[] = {
      {other(MLG_BF16, 72),
       "bf16 attention with heads of width 72: the device's library is asked for multiples of 16"},
      {other(MLG_BF16, 144), "bf16 attention with heads of width 144"},
      {other(MLG_F16, 64), "f16 attention: the device's library is asked for bf16 alone"},
      {other(MLG_BF16, 64, std::int64_t{1} << 24), "bf16 attention of 2147483648 elements"}};
  for (const auto& [shape, text] : unfit) {
    said.clear();
    AttentionLibrary library(device, {}), own(device, {.library = false});
    AttentionShape backward = shape;
    backward.backward = true;
    EXPECT_FALSE(own.wanted(shape));
    EXPECT_TRUE(said.empty());
    EXPECT_FALSE(library.wanted(shape));
    EXPECT_FALSE(library.wanted(backward));
    ASSERT_EQ(said.size(), 1U) << text;
    EXPECT_EQ(said[0].find(text), 0U) << said[0];
    EXPECT_TRUE(contains(said[0], "the own kernel computes it, without tensor cores"));
    AttentionLibrary required(device, {.required = true});
    EXPECT_TRUE(
        contains(said_by([&] { required.wanted(shape); }), "requires the device's library of attention"));
  }
  EXPECT_EQ(device.asked, 0);
}

// What rounds otherwise than a library is the own kernel's, which is said once.
TEST_F(AttentionAbsent, OtherRoundingIsTheOwnKernels) {
  Without device("", "");
  AttentionLibrary library(device, {});
  library.leave_to_own_kernel();
  library.leave_to_own_kernel();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(
      contains(said[0], "model.attention asks for a softmax that the device's library cannot compute"));
}

}  // namespace
}  // namespace mulligan::cuda::attention_absent_test
