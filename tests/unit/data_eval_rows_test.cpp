// Evaluation rows: every target token is scored exactly once, whatever the sizes and the number of ranks.
#include <gtest/gtest.h>

#include "framework/data/eval_rows.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_eval_rows_test {
namespace {

// How often each target of a stream is scored by all ranks together.
std::vector<int> coverage(std::int64_t token_count, const std::vector<std::vector<EvalSpan>>& ranks) {
  std::vector<int> count(static_cast<std::size_t>(std::max<std::int64_t>(token_count - 1, 0)), 0);
  for (const auto& rows : ranks) {
    for (const EvalSpan& row : rows) {
      for (std::int64_t i = row.score_begin; i < row.length; ++i)
        ++count.at(static_cast<std::size_t>(row.start + i));
    }
  }
  return count;
}

TEST(EvalRows, PlainRowsScoreEveryTokenOnceForEveryWorldSize) {
  for (const std::int64_t tokens : {1, 2, 9, 17, 18, 64, 65, 66, 1000}) {
    std::vector<EvalSpan> single;
    for (const int world_size : {1, 2, 3, 8}) {
      std::vector<std::vector<EvalSpan>> ranks;
      std::vector<EvalSpan> joined;
      for (int rank = 0; rank < world_size; ++rank) {
        ranks.push_back(plain_eval_rows(tokens, {8, 2, world_size, rank, false}));
        joined.insert(joined.end(), ranks.back().begin(), ranks.back().end());
      }
      for (const int times : coverage(tokens, ranks))
        ASSERT_EQ(times, 1) << tokens << " tokens, " << world_size;
      if (world_size == 1) single = joined;
      EXPECT_EQ(joined, single) << "rows depend on the world size";
    }
  }
}

// Shares are of the targets, so that no share's rows reach into the next; more shares than targets leave some empty.
TEST(EvalRows, SharesScoreEveryTokenOnceForEveryWorldSize) {
  for (const std::int64_t tokens : {1, 2, 9, 17, 18, 64, 65, 66, 1000}) {
    for (const std::int64_t shares : {1, 2, 7, 8, 70}) {
      std::vector<EvalSpan> single;
      for (const int world_size : {1, 2, 3, 8}) {
        std::vector<std::vector<EvalSpan>> ranks;
        std::vector<EvalSpan> joined;
        for (int rank = 0; rank < world_size; ++rank) {
          PlainEvalOptions options{8, 2, world_size, rank, false};
          options.shares = shares;
          ranks.push_back(plain_eval_rows(tokens, options));
          joined.insert(joined.end(), ranks.back().begin(), ranks.back().end());
        }
        for (const int times : coverage(tokens, ranks))
          ASSERT_EQ(times, 1) << tokens << " tokens, " << shares << " shares, " << world_size << " ranks";
        if (world_size == 1) single = joined;
        EXPECT_EQ(joined, single) << "rows depend on the world size";
      }
      for (const EvalSpan& row : single) {
        const std::int64_t share = ((row.start + 1) * shares - 1) / (tokens - 1);
        EXPECT_LE(row.start + row.length, (tokens - 1) * (share + 1) / shares) << "a row beyond its share";
        EXPECT_LE(row.length, 16);
        EXPECT_GT(row.length, 0);
      }
      if (shares == 1) {
        EXPECT_EQ(single, plain_eval_rows(tokens, {8, 2, 1, 0, false}));
      }
    }
  }
}

TEST(EvalRows, SlidingWindowsScoreEveryTokenOnceWithFullContext) {
  for (const std::int64_t tokens : {1, 2, 7, 8, 9, 10, 63, 64, 65, 200}) {
    for (const std::int64_t stride : {1, 3, 8}) {
      for (const int world_size : {1, 3}) {
        std::vector<std::vector<EvalSpan>> ranks;
        for (int rank = 0; rank < world_size; ++rank) {
          ranks.push_back(sliding_eval_windows(tokens, 8, stride, world_size, rank));
          for (const EvalSpan& window : ranks.back()) {
            EXPECT_TRUE(window.start == 0 || window.score_begin == 8 - stride);
            EXPECT_EQ(window.start % stride, 0);
          }
        }
        for (const int times : coverage(tokens, ranks)) ASSERT_EQ(times, 1) << tokens << " " << stride;
      }
    }
  }
}

TEST(EvalRows, DroppingTheRemainderKeepsWholeRowsOnly) {
  // 10 sequences of 8, rows of 3: rank 0 has sequences 0..4 and keeps one row, rank 1 has 5..9 and keeps one.
  const std::int64_t tokens = 10 * 8 + 1 + 5;
  EXPECT_EQ(plain_eval_rows(tokens, {8, 3, 2, 0, true}), (std::vector<EvalSpan>{{0, 24, 0}}));
  EXPECT_EQ(plain_eval_rows(tokens, {8, 3, 2, 1, true}), (std::vector<EvalSpan>{{40, 24, 0}}));
  EXPECT_TRUE(plain_eval_rows(5, {8, 1, 1, 0, true}).empty());
}

TEST(EvalRows, AShortRowIsPaddedWithUnattendedTokens) {
  const std::vector<std::uint16_t> tokens{1, 5, 6, 1, 7, 8};
  Batch batch;
  fill_eval_row(tokens, {0, 5, 0}, 8, 1, 0, batch);
  EXPECT_EQ(batch.tokens, (std::vector<std::int32_t>{1, 5, 6, 1, 7, 1, 1, 1}));
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{5, 6, 1, 7, 8, 1, 1, 1}));
  EXPECT_EQ(batch.segment_count, 5);  // 0..3, 3..5 and one per padding token
  EXPECT_EQ(batch.cu_seqlens[2], 5);
  EXPECT_EQ(batch.longest_segment, 3);
}

TEST(EvalRows, RefusesImpossibleSizes) {
  sentence_of(ExitCode::bad_configuration, [] { plain_eval_rows(100, {0, 1, 1, 0, false}); });
  sentence_of(ExitCode::bad_configuration, [] { plain_eval_rows(100, {8, 1, 2, 2, false}); });
  sentence_of(ExitCode::bad_configuration, [] { sliding_eval_windows(100, 8, 9, 1, 0); });
  sentence_of(ExitCode::bad_configuration, [] { sliding_eval_windows(100, 8, 0, 1, 0); });
}

}  // namespace
}  // namespace mulligan::data_eval_rows_test
