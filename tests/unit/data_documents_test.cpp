// Document order and sampling beyond the reference's fixture.
#include <gtest/gtest.h>

#include "framework/data/documents.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_documents_test {
namespace {

TEST(Documents, IncludeTheNextBosAndSkipWhatPrecedesTheFirst) {
  const std::vector<std::uint16_t> tokens{5, 6, 1, 7, 8, 1, 1, 9};
  EXPECT_EQ(find_documents(tokens), (std::vector<Document>{{2, 4}, {5, 2}, {6, 2}}));
  EXPECT_TRUE(find_documents(std::vector<std::uint16_t>{5, 6}).empty());
  EXPECT_EQ(whole_rows_length(17, 8), 17);
  EXPECT_EQ(whole_rows_length(16, 8), 9);
  EXPECT_EQ(whole_rows_length(8, 8), 0);
}

// Expected values printed by CPython 3.11's random.Random(seed).sample(range(count), k): the branch that
// keeps a set, and a seed of more than 32 bits.
TEST(Documents, SamplingFollowsPythonForLargePopulations) {
  EXPECT_EQ(sample_documents(5000, 6.0 / 5000, 1337), (std::vector<int>{1357, 2726, 2997, 4368, 4677, 4798}));
  EXPECT_EQ(sample_documents(100000, 3.0 / 100000, (1ull << 40) + 5),
            (std::vector<int>{35206, 66110, 67753}));
  EXPECT_EQ(sample_documents(90, 5.0 / 90, 0), (std::vector<int>{5, 33, 49, 53, 65}));
  sentence_of(ExitCode::bad_configuration, [] { sample_documents(10, 0.0, 1); });
  sentence_of(ExitCode::bad_configuration, [] { sample_documents(10, 1.5, 1); });
  sentence_of(ExitCode::bad_configuration, [] { sample_documents(0, 0.5, 1); });
}

TEST(Documents, ChunksCoverEveryPredictedTokenOnceInsideTheirWindow) {
  for (const std::int64_t predicted : {1, 47, 48, 49, 100, 5000}) {
    std::int64_t scored = 0;
    for (std::int64_t i = 0; i < chunk_count(predicted, 48); ++i) {
      const ChunkWindow window = chunk_window(predicted, 48, 2048, i);
      EXPECT_EQ(window.window_start + window.chunk_offset, scored);
      EXPECT_LE(window.window_length, 2048);
      EXPECT_EQ(window.chunk_offset + window.chunk_length, window.window_length);
      scored += window.chunk_length;
    }
    EXPECT_EQ(scored, predicted);
  }
}

}  // namespace
}  // namespace mulligan::data_documents_test
