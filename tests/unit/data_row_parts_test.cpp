// RowParts: what a packed row becomes that is computed in parts.
#include "framework/data/segments.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/core/philox.h"

namespace mulligan::data_row_parts_test {
namespace {

constexpr std::int64_t kTokens = 200;

// Documents that begin at random, cut every `longest` tokens.
Batch row_of(std::uint64_t seed, std::int64_t longest) {
  const PhiloxStream random(seed, "row");
  Batch row;
  row.reserve(kTokens);
  std::vector<std::int32_t> starts;
  for (std::int32_t t = 0; t < kTokens; ++t) {
    row.tokens[static_cast<std::size_t>(t)] = 1000 + t;
    row.targets[static_cast<std::size_t>(t)] = 1001 + t;
    if (t > 0 && random.uniform(static_cast<std::uint64_t>(t)) < 0.03) starts.push_back(t);
  }
  build_segments(starts, kTokens, longest, row);
  return row;
}

// The segments of all parts, but for those without targets, are the row's, one after the other.
void expect_whole(const Batch& row, std::span<const Batch> parts, std::int64_t capacity, std::int64_t longest,
                  bool sees_before) {
  std::int32_t token = 0;
  std::vector<std::int32_t> boundaries = {0};
  for (const Batch& part : parts) {
    if (part.tokens.empty()) continue;
    ASSERT_EQ(static_cast<std::int64_t>(part.tokens.size()), capacity);
    ASSERT_EQ(part.targets.size(), part.tokens.size());
    ASSERT_EQ(part.cu_seqlens[static_cast<std::size_t>(part.segment_count)], capacity);
    const bool expected = sees_before && token > 0;
    bool saw_before = false;
    for (std::int32_t s = 0; s < part.segment_count; ++s) {
      const auto begin = static_cast<std::size_t>(part.cu_seqlens[static_cast<std::size_t>(s)]),
                 end = static_cast<std::size_t>(part.cu_seqlens[static_cast<std::size_t>(s) + 1]);
      ASSERT_LT(begin, end);
      EXPECT_LE(end - begin, static_cast<std::size_t>(longest));
      if (part.targets[begin] < 0) {
        if (begin == 0) {
          saw_before = true;
          EXPECT_EQ(end, 1U);
          EXPECT_EQ(part.tokens[0], 1000 + token - 1) << "the token before";
        }
        for (std::size_t i = begin; i < end; ++i) EXPECT_EQ(part.targets[i], -1);
        continue;
      }
      for (std::size_t i = begin; i < end; ++i, ++token) {
        EXPECT_EQ(part.tokens[i], 1000 + token);
        EXPECT_EQ(part.targets[i], 1001 + token);
      }
      boundaries.push_back(token);
    }
    EXPECT_EQ(saw_before, expected);
  }
  EXPECT_EQ(token, kTokens);
  EXPECT_EQ(boundaries, std::vector<std::int32_t>(row.cu_seqlens.begin(),
                                                  row.cu_seqlens.begin() + row.segment_count + 1));
}

TEST(RowParts, HaveTheSegmentsOfTheRow) {
  for (const bool sees_before : {false, true}) {
    for (const std::int64_t parts : {2, 3, 7}) {
      for (const std::int64_t longest : {1, 9, 40, 150, 200}) {
        const std::int64_t capacity = std::min(kTokens, (kTokens + parts - 1) / parts + longest);
        RowParts cut({kTokens, parts, capacity, longest, sees_before});
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          SCOPED_TRACE(fmt::format("{} parts, segments up to {}, row {}", parts, longest, seed));
          const Batch row = row_of(seed, longest);
          const std::span<const Batch> made = cut.of(row);
          EXPECT_EQ(static_cast<std::int64_t>(made.size()), parts);
          expect_whole(row, made, capacity, longest, sees_before);
        }
      }
    }
  }
}

// Rows of joined documents are cut between these, and parts are whole numbers of them.
TEST(RowParts, OfEqualSegmentsAreFilledByThem) {
  Batch row = row_of(1, 20);
  build_segments({}, kTokens, 20, row);
  RowParts cut({kTokens, 5, 40, 20, false});
  for (const Batch& part : cut.of(row)) EXPECT_EQ(part.segment_count, 2);
  RowParts odd({kTokens, 4, 60, 20, false});
  expect_whole(row, odd.of(row), 60, 20, false);
}

TEST(RowParts, OnePartIsTheRow) {
  const Batch row = row_of(2, 50);
  RowParts whole({kTokens, 1, kTokens, 50, true});
  EXPECT_EQ(whole.of(row).data(), &row);
}

}  // namespace
}  // namespace mulligan::data_row_parts_test
