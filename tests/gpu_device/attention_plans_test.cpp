// How many plans cuDNN is asked for.
#include <random>

#include "framework/data/segments.h"
#include "plugins/backends/cuda/attention/attention_library.h"
#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::attention_plans_test {
namespace {

// As AttentionCall asks for segments of these numbers, at the record's size.
AttentionShape shape_of(const SegmentSummary& summary, std::int64_t tokens, bool backward) {
  const AttentionBucket bucket = bucket_of(summary);
  return {.backward = backward,
          .packed = bucket.packed,
          .tokens = tokens,
          .query_heads = 8,
          .kv_heads = 4,
          .width = 64,
          .rows = bucket.rows,
          .longest = bucket.longest,
          .scale = 0.125};
}

// The record's 134 programs are some of these 516: contexts in steps of a chunk of 48 tokens.
TEST_F(StubDevice, WindowsOfTestTimeTrainingTakeSixteenPlans) {
  GpuDevice gpu = device();
  AttentionLibrary library(gpu, {});
  int programs = 0;
  for (const std::int64_t documents : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
    for (std::int64_t chunk = 1; chunk <= 43; ++chunk, ++programs) {
      const std::int64_t context = std::min<std::int64_t>(chunk * 48, 2048), tokens = documents * context;
      for (const bool backward : {false, true}) {
        const AttentionShape shape = shape_of({documents, context, true}, tokens, backward);
        ASSERT_TRUE(library.wanted(shape));
        ASSERT_TRUE(library.workspace_bytes(shape));
        ASSERT_NE(library.plan(shape), nullptr);
      }
    }
  }
  EXPECT_EQ(programs, 516);
  EXPECT_EQ(stub().plans, 16);
}

// Each is made once, by a thread with a handle of its own, or where there is one thread by who asks for it.
TEST_F(StubDevice, ExpectedPlansAreMadeInParallel) {
  for (const int threads : {1, 4}) {
    reset_stubs();
    GpuDevice gpu(0, "", "", threads);
    AttentionLibrary library(gpu, {});
    stub().plan_together = threads;
    std::vector<AttentionShape> shapes;
    for (const std::int64_t context : {256, 512, 1024, 2048}) {
      for (const bool backward : {false, true})
        shapes.push_back(shape_of({64, context, true}, 64 * context, backward));
    }
    for (int twice = 0; twice < 2; ++twice) {
      for (const AttentionShape& shape : shapes) library.expect(shape);
    }
    for (const AttentionShape& shape : shapes) EXPECT_NE(library.plan(shape), nullptr);
    EXPECT_EQ(stub().plans, 8);
    EXPECT_EQ(stub().most_plans_at_once, threads);
    EXPECT_EQ(stub().handles, threads == 1 ? 1 : 1 + threads);
  }
}

TEST_F(StubDevice, NoPlanIsMadeToSizeAWorkspace) {
  GpuDevice gpu = device();
  AttentionLibrary library(gpu, {});
  const AttentionShape forward = shape_of({137, 2048, false}, 98304, false),
                       backward = shape_of({137, 2048, false}, 98304, true);
  EXPECT_EQ(library.workspace_bytes(forward), 2621440u);  // 1 MiB and 16 bytes for each token
  EXPECT_EQ(library.workspace_bytes(backward), 2621440u + 98304 * (8 + 3 * 8 * 64) * 4);
  EXPECT_EQ(stub().plans, 0);
  ASSERT_NE(library.plan(forward), nullptr);
  EXPECT_EQ(stub().plans, 1);
}

// A thread that fails to make a plan gives its handle back.
TEST_F(StubDevice, AHandleIsNotLostWithAPlan) {
  {
    GpuDevice gpu(0, "", "", 2);
    AttentionLibrary library(gpu, {});
    const AttentionShape first = shape_of({64, 256, true}, 64 * 256, false),
                         second = shape_of({64, 512, true}, 64 * 512, false);
    stub().planning_throws = true;
    library.expect(first);
    EXPECT_THROW(library.plan(first), std::bad_alloc);
    library.expect(second);
    EXPECT_NE(library.plan(second), nullptr);
    EXPECT_EQ(stub().handles, 2) << "one to execute with, one to plan with";
  }
  EXPECT_EQ(stub().handles_destroyed, stub().handles);
}

// All plans that rows of documents can ask for are made before the first of them comes: 28 numbers of rows each way
// for the record's 98,304 tokens in documents of up to 2,048, of three tokens or more on average.
TEST_F(StubDevice, NoRowOfDocumentsWaitsForAPlan) {
  constexpr std::int64_t kTokens = 98304, kLongest = 2048;
  GpuDevice gpu = device();
  AttentionLibrary library(gpu, {});
  const auto summary = [](std::span<const std::int32_t> boundaries) {
    std::vector<std::int32_t> padded(boundaries.begin(), boundaries.end());
    padded.push_back(kTokens);  // as the loader's rows always are
    return *summarise(padded, kTokens);
  };
  const auto plan = [&](const SegmentSummary& segments, auto&& act) {
    if (bucket_of(segments).rows > most_rows(kTokens, kTokens)) return;  // the own kernel's
    for (const bool backward : {false, true}) act(shape_of(segments, kTokens, backward));
  };
  show_possible_segments(kTokens, kLongest, [&](std::span<const std::int32_t> boundaries) {
    plan(summary(boundaries), [&](const AttentionShape& shape) { library.expect(shape); });
  });
  library.finish_expected();
  const int made = stub().plans;
  EXPECT_LE(made, 56);

  std::mt19937 random(1);
  std::vector<std::int32_t> boundaries;
  for (int row = 0; row < 4000; ++row) {
    // From a token for each document to rows of whole segments; now and then all of one length.
    const auto most = static_cast<std::int32_t>(1 + random() % (row % 3 == 0   ? 64
                                                                : row % 3 == 1 ? 600
                                                                               : 20000));
    const bool equal = row % 5 == 0;
    boundaries.assign(1, 0);
    while (boundaries.back() < kTokens) {
      const auto document =
          equal ? most : static_cast<std::int32_t>(1 + random() % static_cast<unsigned>(most));
      for (std::int32_t left = document; left > 0 && boundaries.back() < kTokens; left -= kLongest)
        boundaries.push_back(
            std::min<std::int32_t>(kTokens, boundaries.back() + std::min<std::int32_t>(left, kLongest)));
    }
    plan(summary(boundaries), [&](const AttentionShape& shape) { ASSERT_NE(library.plan(shape), nullptr); });
  }
  EXPECT_EQ(stub().plans, made) << "plans made after training began";
}

}  // namespace
}  // namespace mulligan::cuda::attention_plans_test
