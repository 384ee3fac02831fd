// Rows of evaluation score every target token exactly once. Document order, sampling, and the parts of a packed row.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/core/philox.h"
#include "framework/data/documents.h"
#include "framework/data/eval_rows.h"
#include "framework/data/segments.h"
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

EvalConfig rows_of(std::int64_t length, std::int64_t packed, std::int64_t shares = 0) {
  EvalConfig eval;
  eval.sequence_length = length;
  eval.packed_sequences = packed;
  eval.shares = shares;
  return eval;
}
EvalConfig windows_of(std::int64_t length, std::int64_t stride) {
  EvalConfig eval;
  eval.mode = EvalMode::sliding;
  eval.sequence_length = length;
  eval.stride = stride;
  return eval;
}

// Plain rows (0) and shares. Shares are of the targets, so that no share's rows reach into the next; more shares than targets leave some empty.
TEST(EvalRows, PlainRowsAndSharesScoreEveryTokenOnceForEveryWorldSize) {
  for (const std::int64_t tokens : {1, 2, 9, 17, 18, 64, 65, 66, 1000}) {
    for (const std::int64_t shares : {0, 1, 2, 7, 8, 70}) {
      std::vector<EvalSpan> single;
      for (const int world_size : {1, 2, 3, 8}) {
        std::vector<std::vector<EvalSpan>> ranks;
        std::vector<EvalSpan> joined;
        for (int rank = 0; rank < world_size; ++rank) {
          ranks.push_back(eval_rows(tokens, rows_of(8, 2, shares), world_size, rank));
          joined.insert(joined.end(), ranks.back().begin(), ranks.back().end());
        }
        for (const int times : coverage(tokens, ranks))
          ASSERT_EQ(times, 1) << tokens << " tokens, " << shares << " shares, " << world_size << " ranks";
        if (world_size == 1) single = joined;
        EXPECT_EQ(joined, single) << "rows depend on the world size";
      }
      if (shares == 0) continue;
      for (const EvalSpan& row : single) {
        const std::int64_t share = ((row.start + 1) * shares - 1) / (tokens - 1);
        EXPECT_LE(row.start + row.length, (tokens - 1) * (share + 1) / shares) << "a row beyond its share";
        EXPECT_LE(row.length, 16);
        EXPECT_GT(row.length, 0);
      }
      if (shares == 1) {
        EXPECT_EQ(single, eval_rows(tokens, rows_of(8, 2)));
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
          ranks.push_back(eval_rows(tokens, windows_of(8, stride), world_size, rank));
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
  EvalConfig whole = rows_of(8, 1);
  whole.drop_remainder = true;
  EXPECT_TRUE(eval_rows(5, whole).empty());
  sentence_of(ExitCode::bad_configuration, [] { eval_rows(100, rows_of(0, 1)); });
  sentence_of(ExitCode::bad_configuration, [] { eval_rows(100, rows_of(8, 1), 2, 2); });
  sentence_of(ExitCode::bad_configuration, [] { eval_rows(100, windows_of(8, 9)); });
  sentence_of(ExitCode::bad_configuration, [] { eval_rows(100, windows_of(8, 0)); });
}

TEST(Documents, IncludeTheNextBosAndSkipWhatPrecedesTheFirst) {
  const std::vector<std::uint16_t> tokens{5, 6, 1, 7, 8, 1, 1, 9};
  EXPECT_EQ(find_documents(tokens), (std::vector<Document>{{2, 4}, {5, 2}, {6, 2}}));
  EXPECT_TRUE(find_documents(std::vector<std::uint16_t>{5, 6}).empty());
  EXPECT_EQ(whole_rows_length(17, 8), 17);
  EXPECT_EQ(whole_rows_length(16, 8), 9);
  EXPECT_EQ(whole_rows_length(8, 8), 0);
}

// Values of CPython 3.11's random.Random(seed).sample(range(count), k): the branch that keeps a set, and a seed beyond 32 bits.
TEST(Documents, SamplingFollowsPythonForLargePopulations) {
  EXPECT_EQ(sample_documents(5000, 6.0 / 5000, 1337), (std::vector<int>{1357, 2726, 2997, 4368, 4677, 4798}));
  EXPECT_EQ(sample_documents(100000, 3.0 / 100000, (1ull << 40) + 5),
            (std::vector<int>{35206, 66110, 67753}));
  EXPECT_EQ(sample_documents(90, 5.0 / 90, 0), (std::vector<int>{5, 33, 49, 53, 65}));
  sentence_of(ExitCode::bad_configuration, [] { sample_documents(10, 0.0, 1); });
  sentence_of(ExitCode::bad_configuration, [] { sample_documents(10, 1.5, 1); });
  sentence_of(ExitCode::bad_configuration, [] { sample_documents(0, 0.5, 1); });
}

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
  RowParts whole({kTokens, 1, kTokens, 50, true});
  EXPECT_EQ(whole.of(row).data(), &row) << "one part";
}

}  // namespace
}  // namespace mulligan::data_eval_rows_test
