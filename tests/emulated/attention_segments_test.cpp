// What the host and the device make of cu_seqlens for a library's attention, against the plainest way to
// write it down.
#include <mulligan/cuda_kernel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "plugins/backends/cuda/attention/segment_tables.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/backend_under_test.h"

namespace mulligan::cuda::attention_segments_test {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"  // its other kernels
#include "kernels/attention/cuda_rows.cu"
#pragma GCC diagnostic pop

using Boundaries = std::vector<std::int32_t>;

// Random segments, some empty, over `tokens` tokens, then up to 5 empty ones.
Boundaries random_boundaries(std::int32_t tokens, std::mt19937& random) {
  Boundaries cu = {0};
  while (cu.back() < tokens) {
    const auto length = static_cast<std::int32_t>(random() % 3 == 0 ? 0 : random() % 300);
    cu.push_back(std::min(tokens, cu.back() + length));
  }
  cu.insert(cu.end(), random() % 6, tokens);
  return cu;
}

TEST(AttentionSegments, SummaryIsWhatCountingGives) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto tokens = static_cast<std::int32_t>(1 + random() % 2000);
    const Boundaries cu = random_boundaries(tokens, random);
    std::int64_t count = 0, longest = 0;
    for (std::size_t i = 1; i < cu.size(); ++i) {
      if (cu[i] > cu[i - 1]) count = static_cast<std::int64_t>(i);
      longest = std::max<std::int64_t>(longest, cu[i] - cu[i - 1]);
    }
    const std::optional<SegmentSummary> summary = summarise(cu, tokens);
    ASSERT_TRUE(summary.has_value());
    EXPECT_EQ(summary->count, count);
    EXPECT_EQ(summary->longest, longest);
    EXPECT_EQ(summary->equal, longest * static_cast<std::int64_t>(cu.size() - 1) == tokens);
    const AttentionBucket bucket = bucket_of(*summary);
    EXPECT_GE(bucket.rows, count);
    EXPECT_GE(bucket.longest, longest);
    if (!summary->equal) {
      EXPECT_LE(bucket.rows * 4, std::max<std::int64_t>(4 * 16, 5 * count));
      EXPECT_LT(bucket.longest, std::max<std::int64_t>(2049, 2 * longest));
    }
  }
}

TEST(AttentionSegments, BoundariesThatDoNotFitAreNoSegments) {
  for (const Boundaries& cu : std::vector<Boundaries>{{0}, {0, 3}, {1, 4}, {0, 5}, {0, 3, 2, 4}, {0, -1, 4}})
    EXPECT_FALSE(summarise(cu, 4).has_value());
  EXPECT_EQ(summarise(Boundaries{0, 4}, 4), (SegmentSummary{1, 4, true}));
  EXPECT_EQ(summarise(Boundaries{0, 2, 4}, 4), (SegmentSummary{2, 2, true}));
  EXPECT_EQ(summarise(Boundaries{0, 2, 4, 4}, 4), (SegmentSummary{2, 2, false}));
}

// A row of 98,304 packed tokens in 137 documents of up to 2,048, as the record trains on: a row of the plan has 16 tiles
// of 128 queries, whatever document is in it. (Powers of two: 256 rows, 4,096 tiles.)
TEST(AttentionSegments, DocumentsGetFewRowsTooMany) {
  const AttentionBucket bucket = bucket_of({137, 2048, false});
  EXPECT_EQ(bucket, (AttentionBucket{160, 2048, true}));
  EXPECT_EQ(bucket.rows * bucket.longest / 128, 2560);
  std::set<std::int64_t> rows;
  for (std::int64_t count = 100; count <= 192; ++count) rows.insert(bucket_of({count, 2048, false}).rows);
  EXPECT_EQ(rows, (std::set<std::int64_t>{112, 128, 160, 192}));  // 100 to 192 documents
}

// Batches of up to 64 documents and contexts of up to 2,048 tokens, whichever of them a text gives: four lengths of 16
// and of 64 rows, each with a forward and a backward plan.
TEST(AttentionSegments, WindowsOfTestTimeTrainingShareEightBuckets) {
  std::set<AttentionBucket> buckets;
  int windows = 0;
  for (const std::int64_t documents : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
    for (std::int64_t context = 16; context <= 2048; context += 16, ++windows) {
      const AttentionBucket bucket = bucket_of({documents, context, true});
      EXPECT_GE(bucket.rows, documents);
      EXPECT_GE(bucket.longest, context);
      EXPECT_LE(bucket.rows, most_rows(documents, documents * context));
      buckets.insert(bucket);
    }
  }
  EXPECT_EQ(windows, 1536);
  EXPECT_EQ(buckets.size(), 8u);
}

TEST(AttentionSegments, ManyEqualSegmentsAreAPlainBatch) {
  EXPECT_EQ(bucket_of({65, 300, true}), (AttentionBucket{65, 300, false}));
  EXPECT_EQ(bucket_of({64, 300, true}), (AttentionBucket{64, 512, true}));
}

// Plain batches of these lengths can have NaN in the gradient of q (cudnn-frontend issue 628): packed rows take them.
TEST(AttentionSegments, LengthsThatGiveNanArePacked) {
  for (const std::int64_t length : {64, 192, 320, 704, 2112}) {
    const AttentionBucket bucket = bucket_of({100, length, true});
    EXPECT_TRUE(bucket.packed) << length;
    EXPECT_LE(bucket.rows, most_rows(100, 100 * length)) << "so that the own kernel does not compute them";
  }
  for (const std::int64_t length : {63, 65, 128, 256, 300})
    EXPECT_FALSE(bucket_of({100, length, true}).packed) << length;
}

TEST(AttentionSegments, MostRowsHoldEveryBucket) {
  for (const int tokens : {1, 100, 2048, 98304}) {
    for (std::int64_t documents = 1; documents <= std::min(tokens, 32768); ++documents) {
      EXPECT_LE(bucket_of({documents, tokens, false}).rows, most_rows(tokens, tokens));
    }
  }
}

// Uploads are followed, whole or in part; what the host does not see written is not known any more.
TEST(AttentionSegments, TablesFollowUploads) {
  SegmentTables tables;
  Boundaries memory(8);
  char* address = reinterpret_cast<char*>(memory.data()) + 4;
  int told = 0;
  tables.watch(address, 10, {0, 10, 10, 10}, &tables, [&] { ++told; });
  EXPECT_EQ(tables.summary(address), (SegmentSummary{1, 10, false}));
  const Boundaries both = {-7, 0, 4, 8, 10, -7};  // begins before the boundaries and ends after them
  tables.written(memory.data(), both.data(), both.size() * 4);
  EXPECT_EQ(tables.summary(address), (SegmentSummary{3, 4, false}));
  const std::int32_t one = 5;
  tables.written(address + 4, &one, 4);
  EXPECT_EQ(tables.summary(address), (SegmentSummary{3, 5, false}));
  tables.written(address + 16, &one, 4);  // directly after them
  EXPECT_EQ(tables.summary(address), (SegmentSummary{3, 5, false}));
  tables.written(address + 4, nullptr, 4);
  EXPECT_FALSE(tables.summary(address).has_value());
  tables.written(address + 4, &one, 4);
  EXPECT_TRUE(tables.summary(address).has_value());
  EXPECT_EQ(told, 4) << "each time that they were overwritten";
  tables.watch(address, 10, {0, 10, 10, 10}, &told, {});
  tables.unwatch(address, &told);
  EXPECT_TRUE(tables.summary(address).has_value());
  tables.unwatch(address, &tables);
  EXPECT_FALSE(tables.summary(address).has_value());
}

// attention_rows as a kernel of its own.
struct Rows {
  static constexpr const char* name = "test_attention_rows";
  static constexpr const char* signature =
      "in cu_seqlens, out query_starts, out kv_starts, out stats_starts, out lengths; query kv stats";
  static void plan(sdk::CudaCall& call) {
    const auto number = [&](std::uint32_t index) { return static_cast<int>(call.attribute(index)); };
    const int rows = static_cast<int>(call.size(4));
    call.launch(MLG_INSTANCE(attention_rows), {rows / 256 + 1, 1, 1}, {256, 1, 1}, call.tensor(0),
                static_cast<int>(call.size(0) - 1), rows, number(0), number(1), number(2), call.tensor(1),
                call.tensor(2), call.tensor(3), call.tensor(4));
  }
};

TEST(AttentionSegments, StartsAndLengthsOfRows) {
  using namespace kernel_test;
  BackendFixture backend(backend_under_test(2));
  static const mlg_kernel kernel = sdk::cuda_kernel<Rows>("the emulated device needs none");
  sdk::check(backend.table().add_kernels(backend.instance(), &kernel, 1, 0));
  std::mt19937 random(2);
  for (const std::int64_t rows : {16, 256, 512}) {
    Boundaries cu = random_boundaries(1000, random);
    cu.resize(static_cast<std::size_t>(std::min<std::int64_t>(rows, 300)),
              1000);  // also more rows than segments
    const Array starts{MLG_I32, {rows + 1}, {}}, lengths{MLG_I32, {rows}, {}};
    const auto entries = static_cast<std::int64_t>(cu.size());
    const Array boundaries{MLG_I32, {entries}, std::vector<double>(cu.begin(), cu.end())};
    const KernelCall call = kernel_call(Rows::name, "cu_seqlens query_starts kv_starts stats_starts lengths",
                                        {boundaries, starts, starts, starts, lengths},
                                        {{"query", 128}, {"kv", 64}, {"stats", 8}});
    const std::map<std::string, Array> written = backend.run(call).written;
    std::int64_t at = 0;
    for (std::size_t row = 0; row <= static_cast<std::size_t>(rows); ++row) {
      ASSERT_EQ(written.at("query_starts").values[row], static_cast<double>(at * 128)) << row;
      ASSERT_EQ(written.at("kv_starts").values[row], static_cast<double>(at * 64)) << row;
      ASSERT_EQ(written.at("stats_starts").values[row], static_cast<double>(at * 8)) << row;
      if (row == static_cast<std::size_t>(rows)) break;
      const std::int64_t length = row + 1 < cu.size() ? cu[row + 1] - cu[row] : 0;
      ASSERT_EQ(written.at("lengths").values[row], static_cast<double>(length)) << row;
      at += length;
    }
  }
}

}  // namespace
}  // namespace mulligan::cuda::attention_segments_test
