// How many plans cuDNN is asked for.
#include <set>

#include "plugins/backends/cuda/attention/attention_library.h"
#include "tests/gpu_device/stand_in_device.h"

namespace mulligan::cuda {
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
TEST_F(StandInDevice, WindowsOfTestTimeTrainingTakeSixteenPlans) {
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
  EXPECT_EQ(stand_in().plans, 16);
}

// Each is made once, by a thread with a handle of its own, or where there is one thread by who asks for it.
TEST_F(StandInDevice, ExpectedPlansAreMadeBesideEachOther) {
  for (const int threads : {1, 4}) {
    stand_in() = {};
    GpuDevice gpu(0, "", "", threads);
    AttentionLibrary library(gpu, {});
    stand_in().plan_together = threads;
    std::vector<AttentionShape> shapes;
    for (const std::int64_t context : {256, 512, 1024, 2048}) {
      for (const bool backward : {false, true})
        shapes.push_back(shape_of({64, context, true}, 64 * context, backward));
    }
    for (int twice = 0; twice < 2; ++twice) {
      for (const AttentionShape& shape : shapes) library.expect(shape);
    }
    for (const AttentionShape& shape : shapes) EXPECT_NE(library.plan(shape), nullptr);
    EXPECT_EQ(stand_in().plans, 8);
    EXPECT_EQ(stand_in().most_plans_at_once, threads);
    EXPECT_EQ(stand_in().handles, threads == 1 ? 1 : 1 + threads);
  }
}

TEST_F(StandInDevice, NoPlanIsMadeToSizeAWorkspace) {
  GpuDevice gpu = device();
  AttentionLibrary library(gpu, {});
  const AttentionShape forward = shape_of({137, 2048, false}, 98304, false),
                       backward = shape_of({137, 2048, false}, 98304, true);
  EXPECT_EQ(library.workspace_bytes(forward), 2621440u);  // 1 MiB and 16 bytes for each token
  EXPECT_EQ(library.workspace_bytes(backward), 2621440u + 98304 * (8 + 3 * 8 * 64) * 4);
  EXPECT_EQ(stand_in().plans, 0);
  ASSERT_NE(library.plan(forward), nullptr);
  EXPECT_EQ(stand_in().plans, 1);
}

}  // namespace
}  // namespace mulligan::cuda
