// data.order = "shuffled": every row of every shard once in a pass, in another order in each, whatever the ranks and steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/core/error.h"
#include "framework/data/loader.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_loader_shuffled_test {
namespace {

namespace fs = std::filesystem;

// Three shards of 5, 2 and 9 spans of 4 + 1 tokens, and tails. Each BOS is followed by the number of the span.
LoaderOptions shuffled(const std::string& name, std::int64_t group_spans = 4) {
  const fs::path folder = fresh_folder(name);
  LoaderOptions options;
  std::uint16_t number = 100;
  for (const std::size_t spans : {5, 2, 9}) {
    std::vector<std::uint16_t> tokens;
    for (std::size_t i = 0; i < spans; ++i, ++number) tokens.insert(tokens.end(), {1, number, 7, 8, 9});
    tokens.insert(tokens.end(), {1, 50});
    options.shards.push_back(folder /
                             ("fineweb_train_00000" + std::to_string(options.shards.size()) + ".bin"));
    write_shard(options.shards.back(), tokens);
  }
  options.row_tokens = 4;
  options.max_segment_tokens = 4;
  options.order = DataOrder::shuffled;
  options.seed = 11;
  options.group_spans = group_spans;
  return options;
}

constexpr int all_spans = 5 + 2 + 9;

std::vector<int> numbers(Loader& loader, int rows) {
  std::vector<int> read;
  Batch batch;
  for (int row = 0; row < rows; ++row) {
    loader.next(batch);
    read.push_back(batch.tokens[1]);
  }
  return read;
}

TEST(ShuffledLoader, APassReadsEveryRowOnceAndTheNextInAnotherOrder) {
  Loader loader(shuffled("shuffled_pass"));
  EXPECT_EQ(loader.spans_per_epoch(), all_spans);
  std::vector<int> first = numbers(loader, all_spans), second = numbers(loader, all_spans);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::ranges::is_sorted(first));
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, second);
  for (int i = 0; i < all_spans; ++i) EXPECT_EQ(first[static_cast<std::size_t>(i)], 100 + i);
}

// A row of 12 tokens is three pieces of 4 from anywhere, each a segment; a pass of 16 pieces is five rows and a piece.
TEST(ShuffledLoader, RowsAreMadeOfPiecesOfASegment) {
  Loader whole(shuffled("shuffled_rows", 1));
  LoaderOptions options = shuffled("shuffled_pieces", 1);
  options.row_tokens = 12;
  Loader loader(options);
  EXPECT_EQ(loader.spans_per_epoch(), 5);
  Batch row;
  for (int i = 0; i < 8; ++i) {
    loader.next(row);
    ASSERT_EQ(row.segment_count, 3);
    EXPECT_EQ(row.longest_segment, 4);
    const std::vector<int> pieces = numbers(whole, 3);
    for (std::size_t at = 0; at < 12; ++at) {
      EXPECT_EQ(row.tokens[at], at % 4 == 1   ? pieces[at / 4]
                                : at % 4 == 0 ? 1
                                              : static_cast<int>(5 + at % 4));
      EXPECT_EQ(row.targets[at], at % 4 == 0 ? pieces[at / 4] : static_cast<int>(6 + at % 4));
    }
  }
}

TEST(ShuffledLoader, TheSeedDecidesAndTheSizeOfStepsDoesNot) {
  Loader fours(shuffled("shuffled_fours")), threes(shuffled("shuffled_threes", 3));
  const std::vector<int> read = numbers(fours, 48);
  EXPECT_EQ(numbers(threes, 48), read);
  LoaderOptions other = shuffled("shuffled_seed");
  other.seed = 12;
  Loader reseeded(other);
  EXPECT_NE(numbers(reseeded, 48), read);
}

TEST(ShuffledLoader, RanksDivideTheSameStepsAndResumeUnderOthers) {
  Loader one(shuffled("shuffled_one"));
  LoaderOptions options = shuffled("shuffled_two");
  options.world_size = 2;
  Loader first(options);
  options.rank = 1;
  Loader second(options);
  for (int step = 0; step < 6; ++step) {
    const std::vector<int> rows = numbers(one, 4), mine = numbers(first, 2), others = numbers(second, 2);
    EXPECT_EQ(std::vector<int>(rows.begin(), rows.begin() + 2), mine);
    EXPECT_EQ(std::vector<int>(rows.begin() + 2, rows.end()), others);
  }
  EXPECT_EQ(one.position(), second.position());
  Loader resumed(shuffled("shuffled_resumed", 8));
  resumed.restore(second.position());
  EXPECT_EQ(numbers(resumed, 8), numbers(one, 8));
  EXPECT_EQ(resumed.position_after(8 * 4), one.position());
}

TEST(ShuffledLoader, PartsAreShuffledEachByItself) {
  LoaderOptions options = shuffled("shuffled_parts");
  options.parts = {{"a", 1, 1}, {"b", 2, 3}};
  Loader loader(options);
  std::vector<int> read = numbers(loader, 20);  // each pass of `a` is 5 rows, of `b` 11
  const auto of_a = std::ranges::count_if(read, [](int number) { return number < 105; });
  EXPECT_EQ(of_a, 5);
  std::erase_if(read, [](int number) { return number >= 105; });
  std::ranges::sort(read);
  EXPECT_EQ(read, (std::vector<int>{100, 101, 102, 103, 104}));
}

TEST(ShuffledLoader, WhatDoesNotFitIsRefused) {
  EXPECT_NO_THROW(Loader(shuffled("shuffled_whole", all_spans))) << "longer than any shard";
  EXPECT_THROW(Loader(shuffled("shuffled_more", all_spans + 1)), Error);
  Loader loader(shuffled("shuffled_position"));
  EXPECT_THROW(loader.restore({.consumed_spans = 8, .shard_visits = 1, .visit_spans = 4}), Error)
      << "of another order";
  LoaderOptions options = shuffled("shuffled_far", 1);
  options.row_tokens = 12;
  EXPECT_THROW(Loader(options).restore({.consumed_spans = std::int64_t{1} << 61}), Error)
      << "three times as many pieces are no number of 64 bits";
}

}  // namespace
}  // namespace mulligan::data_loader_shuffled_test
