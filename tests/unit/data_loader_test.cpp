// The training loader beyond the reference's fixtures (tests/golden/loader_golden_test.cpp, arena_loader_golden_test.cpp).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.h"
#include "framework/data/loader.h"
#include "framework/data/prefetcher.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_loader_test {
namespace {

namespace fs = std::filesystem;
using Ints = std::vector<std::int32_t>;
using Tokens = std::vector<std::uint16_t>;

// Shards with `junk` tokens before the first BOS, then a BOS every 7 tokens. All other tokens differ, so that a wrong cursor shows.
std::vector<fs::path> make_shards(const std::string& name, const std::vector<std::size_t>& sizes,
                                  std::size_t junk = 3) {
  std::vector<Tokens> shards;
  std::uint16_t value = 10;
  for (const std::size_t size : sizes) {
    Tokens& tokens = shards.emplace_back(size);
    for (std::size_t t = 0; t < size; ++t)
      tokens[t] = t >= junk && (t - junk) % 7 == 0 ? std::uint16_t{1} : value++;
  }
  return fresh_shards(name, shards);
}

LoaderOptions options_for(const std::vector<fs::path>& shards, int world_size = 1, int rank = 0) {
  LoaderOptions options;
  options.shards = shards;
  options.row_tokens = 16;
  options.max_segment_tokens = 5;
  options.world_size = world_size;
  options.rank = rank;
  return options;
}

Ints next_tokens(Loader& loader) {
  Batch batch;
  loader.next(batch);
  return batch.tokens;
}

TEST(Loader, RefusesShardsThatHoldNoGlobalMicroBatch) {
  const auto shards = make_shards("loader_small", {30, 36});
  EXPECT_NO_THROW(Loader(options_for(shards, 1)));
  const std::string message = sentence_of(ExitCode::bad_data, [&] { Loader loader(options_for(shards, 2)); });
  EXPECT_TRUE(contains(message, "34 tokens"));  // 2 ranks x 17
  EXPECT_TRUE(contains(message, "33"));         // 36 less 3 before the first BOS
}

TEST(Loader, APassIsWholeGroupsOfEveryShard) {
  LoaderOptions options = options_for(make_shards("loader_groups", {200, 20, 150}));
  options.group_spans = 4;
  // (200 - 3) / 17 = 11 spans: two groups and a tail; 20 tokens hold none; 150 hold 8 spans.
  EXPECT_EQ(Loader(options).spans_per_epoch(), 16);
}

TEST(Loader, GroupsMayChangeOnTheWay) {
  const auto shards = make_shards("loader_regroup", {400});
  LoaderOptions options = options_for(shards, 2, 1);
  options.group_spans = 4;
  Loader plain(options);
  Prefetcher rows(std::make_unique<Loader>(options), 3);
  Batch batch;
  for (int i = 0; i < 2; ++i) {
    plain.next(batch);
    EXPECT_EQ(rows.next().tokens, batch.tokens);
  }
  rows.set_group_spans(8);
  EXPECT_EQ(rows.position(), plain.position());
  options.group_spans = 8;
  Loader larger(options);
  larger.restore(plain.position());
  for (int i = 0; i < 4; ++i) {
    larger.next(batch);
    EXPECT_EQ(rows.next().tokens, batch.tokens) << i;
  }
  EXPECT_EQ(rows.position(), larger.position());
  EXPECT_TRUE(refuses([&] { rows.set_group_spans(3); }, ExitCode::bad_configuration, "2 ranks"));
  sentence_of(ExitCode::bad_data, [&] { rows.set_group_spans(100); });
  rows.set_group_spans(4);
  EXPECT_EQ(rows.next().tokens.size(), 16u);
}

TEST(Loader, RefusesTokensOutsideTheVocabularyAndPositionsThatDoNotFit) {
  const auto shards = make_shards("loader_refuse", {100});
  LoaderOptions small = options_for(shards);
  small.vocabulary = 15;
  Loader loader(small);
  const std::string message = sentence_of(ExitCode::bad_data, [&] { next_tokens(loader); });
  EXPECT_TRUE(contains(message, "vocabulary of 15", "fineweb_train_000000.bin"));
  EXPECT_EQ(loader.position().consumed_spans, 0);

  Loader good(options_for(shards));
  for (const LoaderPosition& bad :
       {LoaderPosition{100, 0, 99}, LoaderPosition{1, 0, 2}, LoaderPosition{3, -1, 0},
        LoaderPosition{-1, 0, -1}, LoaderPosition{INT64_MAX, 0, 0}, LoaderPosition{0, INT64_MAX, 0}}) {
    sentence_of(ExitCode::bad_data, [&] { good.restore(bad); });
  }
  sentence_of(ExitCode::bad_configuration, [&] { Loader(options_for(shards, 2)).position_after(3); });
  sentence_of(ExitCode::bad_configuration, [&] { Loader loader(options_for(shards, 2, 2)); });
  sentence_of(ExitCode::bad_data, [&] { Loader loader(options_for({})); });
}

TEST(Batch, FillingARowNeverMovesItsArrays) {
  // A row of BOS tokens only has as many segments as it can have.
  Loader all_bos(options_for(fresh_shards("batch_arrays", {Tokens(200, 1)})));
  Loader ordinary(options_for(make_shards("batch_arrays_2", {200})));
  Batch batch;
  batch.reserve(16);
  const auto* tokens = batch.tokens.data();
  const auto* boundaries = batch.cu_seqlens.data();
  for (Loader* loader : {&ordinary, &all_bos, &ordinary}) {
    loader->next(batch);
    EXPECT_EQ(batch.tokens.data(), tokens);
    EXPECT_EQ(batch.cu_seqlens.data(), boundaries);
    EXPECT_EQ(batch.cu_seqlens[static_cast<std::size_t>(batch.segment_count)], 16);
  }
}

// The rows of a loader, and the position of what was handed out, also after a restore while it reads ahead.
TEST(Prefetcher, GivesTheLoadersStream) {
  const auto shards = make_shards("prefetch_stream", {100, 75});
  Loader plain(options_for(shards));
  Prefetcher ahead(std::make_unique<Loader>(options_for(shards)), 3);
  const auto expect_rows = [&](int rows) {
    for (int i = 0; i < rows; ++i) {
      EXPECT_EQ(ahead.position(), plain.position());
      EXPECT_EQ(ahead.next().tokens, next_tokens(plain));
    }
    EXPECT_EQ(ahead.position(), plain.position());
  };
  expect_rows(50);
  const LoaderPosition saved = ahead.position();
  for (int i = 0; i < 20; ++i) {
    plain.restore(saved);
    ahead.restore(saved);
    expect_rows(2);
  }
  sentence_of(ExitCode::bad_data, [&] { ahead.restore({1, 0, 2}); });
  expect_rows(1);
}

TEST(Prefetcher, HandsOutTheGoodRowsBeforeRethrowingTheThreadsError) {
  Tokens tokens(17 * 4, 2);
  tokens[0] = 1;
  tokens[17 * 3 + 5] = 999;  // in the fourth span
  LoaderOptions options = options_for(fresh_shards("prefetch_error", {tokens}));
  options.vocabulary = 10;
  Prefetcher ahead(std::make_unique<Loader>(options), 8);
  for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(ahead.next());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(refuses([&] { ahead.next(); }, ExitCode::bad_data, "999"));
  }
  ahead.restore({});  // and can be used again
  EXPECT_NO_THROW(ahead.next());
}

TEST(Prefetcher, StopsCleanlyWithAFullQueueAndUnread) {
  const auto shards = make_shards("prefetch_stop", {100});
  for (int i = 0; i < 50; ++i) {
    Prefetcher ahead(std::make_unique<Loader>(options_for(shards)), 2);
    if (i % 2 == 0) ahead.next();
  }
}

// A shard for part k: a BOS, then the tokens 1000 k + 2 and up.
LoaderOptions three_parts(const std::string& name, std::int64_t group = 1) {
  std::vector<Tokens> shards = {Tokens(2000, 1), Tokens(200, 1), Tokens(2000, 1)};
  for (std::size_t part = 0; part < 3; ++part) {
    for (std::size_t i = 1; i < shards[part].size(); ++i)
      shards[part][i] = static_cast<std::uint16_t>(1000 * part + 2 + i % 900);
  }
  LoaderOptions options;
  options.shards = fresh_shards(name, shards);
  options.row_tokens = 16;
  options.group_spans = group;
  options.parts = {{"a", 1, 0.75}, {"b", 1, 0.25}, {"c", 1, 0.5}};
  return options;
}

int part_of(const Ints& row) {
  return row.back() / 1000;
}

TEST(LoaderMix, TheRatioHoldsAtEveryMoment) {
  Loader loader(three_parts("mix_ratio"));
  std::vector<double> read(3, 0);
  const std::vector<double> share = {0.5, 1.0 / 6, 1.0 / 3};
  for (int n = 1; n <= 600; ++n) {
    ++read[static_cast<std::size_t>(part_of(next_tokens(loader)))];
    for (std::size_t part = 0; part < 3; ++part) EXPECT_LE(std::abs(read[part] - share[part] * n), 1.0) << n;
  }
  EXPECT_EQ(read, (std::vector<double>{300, 100, 200}));
  const LoaderPosition position = loader.position();
  EXPECT_EQ(position.consumed_spans, 600);
  EXPECT_EQ(position.parts[1].spans, 100);
  EXPECT_GT(position.parts[1].shard_visits, 0) << "the small part has been read several times";
}

TEST(LoaderMix, NewWeightsCountFromWhereTheyBegin) {
  Loader before(three_parts("mix_weights"));
  for (int i = 0; i < 60; ++i) next_tokens(before);
  LoaderOptions options = before.options();
  options.parts[0].weight = 0;
  options.parts[1].weight = options.parts[2].weight = 1;
  Loader after(options);
  LoaderPosition position = before.position();
  for (PartPosition& part : position.parts) part.counted = 0;
  after.restore(position);
  std::vector<int> read(3, 0);
  for (int i = 0; i < 40; ++i) ++read[static_cast<std::size_t>(part_of(next_tokens(after)))];
  EXPECT_EQ(read, (std::vector<int>{0, 20, 20})) << "the ratio does not make up for earlier reads";
  EXPECT_EQ(after.position().parts[0].spans, 30);
}

TEST(LoaderMix, OnePartIsTheStreamWithoutParts) {
  LoaderOptions options = three_parts("mix_one", 2);
  options.shards.resize(1);
  options.parts.resize(1);
  LoaderOptions plain = options;
  plain.parts.clear();
  Loader one(options), none(plain);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(next_tokens(one), next_tokens(none)) << i;
}

TEST(LoaderMix, WhatDoesNotFitIsRefused) {
  LoaderOptions options = three_parts("mix_refused");
  options.parts[2].shards = 2;
  sentence_of(ExitCode::bad_configuration, [&] { Loader loader(options); });
  options.parts[2].shards = 1;
  for (LoaderPart& part : options.parts) part.weight = 0;
  sentence_of(ExitCode::bad_configuration, [&] { Loader loader(options); });
  for (LoaderPart& part : options.parts) part.weight = 1;
  options.group_spans = 20;  // 340 tokens, more than part b has
  EXPECT_TRUE(refuses([&] { Loader loader(options); }, ExitCode::bad_data, "of 'b'"));
  options.parts[1].weight = 0;
  Loader loader(options);  // a part that is not read may be empty
  LoaderPosition position = loader.position();
  position.parts.pop_back();
  sentence_of(ExitCode::bad_data, [&] { loader.restore(position); });
  position = loader.position();
  position.parts[0].visit_spans = 5;  // more than was read
  sentence_of(ExitCode::bad_data, [&] { loader.restore(position); });
  position.parts[0].spans = position.consumed_spans = 100000;
  position.parts[0].visit_spans = 1000;  // beyond the shard
  sentence_of(ExitCode::bad_data, [&] { loader.restore(position); });
}

// Three shards of 5, 2 and 9 spans of 4 + 1 tokens, and tails. Each BOS is followed by the number of the span.
LoaderOptions shuffled(const std::string& name, std::int64_t group_spans = 4) {
  std::vector<Tokens> shards;
  std::uint16_t number = 100;
  for (const std::size_t spans : {5, 2, 9}) {
    Tokens& tokens = shards.emplace_back();
    for (std::size_t i = 0; i < spans; ++i, ++number) tokens.insert(tokens.end(), {1, number, 7, 8, 9});
    tokens.insert(tokens.end(), {1, 50});
  }
  LoaderOptions options;
  options.shards = fresh_shards(name, shards);
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

TEST(ShuffledLoader, StepsMayChangeOnTheWay) {
  Loader fours(shuffled("shuffled_before"));
  numbers(fours, 24);
  Loader eights(shuffled("shuffled_after", 8));
  eights.restore(fours.position());
  EXPECT_EQ(numbers(eights, 8), numbers(fours, 8));
  EXPECT_EQ(eights.position_after(8 * 4), fours.position());
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

// Token k of all shards together is k, but for a BOS every 5 tokens.
LoaderOptions stream_of(const std::string& name, const std::vector<std::size_t>& sizes) {
  std::vector<Tokens> shards;
  std::uint16_t next = 0;
  for (const std::size_t size : sizes)
    for (std::uint16_t& token : shards.emplace_back(size)) token = next++ % 5 == 0 ? 1 : next;
  LoaderOptions options;
  options.shards = fresh_shards(name, shards);
  options.row_tokens = 8;
  options.max_segment_tokens = 4;
  options.order = DataOrder::stream;
  options.group_spans = 4;
  return options;
}

// A step has the same four rows for any number of ranks. Each rank reads its share.
TEST(EveryLoader, AnyNumberOfRanksGoesOnFromAnySavedPosition) {
  LoaderOptions plain = options_for(make_shards("every_plain", {200, 20, 150}));
  plain.group_spans = 4;
  LoaderOptions masked = plain;
  masked.masking = MaskingOptions{.share = 0.3, .token = 0, .vocabulary = 1000, .bos_id = 1, .seed = 7};
  const std::vector<std::pair<std::string, LoaderOptions>> streams = {
      {"plain", plain},
      {"masked", masked},
      {"mix", three_parts("every_mix", 4)},
      {"shuffled", shuffled("every_shuffled")},
      {"stream", stream_of("every_stream", {100, 33, 70, 700})}};
  constexpr std::size_t steps = 20;
  for (const auto& [name, options] : streams) {
    Loader alone(options);
    std::vector<Batch> rows(4 * steps);
    std::vector<LoaderPosition> before;
    for (Batch& row : rows) {
      before.push_back(alone.position());
      alone.next(row);
    }
    for (const std::size_t ranks : {1, 2, 4}) {
      for (std::size_t at = 0; at < ranks * steps; at += 3) {
        const std::size_t rank = at % ranks, first = at / ranks, share = 4 / ranks;
        SCOPED_TRACE(fmt::format("{}: rank {} of {} from step {} on", name, rank, ranks, first));
        LoaderOptions own = options;
        own.world_size = static_cast<int>(ranks);
        own.rank = static_cast<int>(rank);
        Loader loader(own);
        if (first > 0) loader.restore(before[4 * first]);
        for (std::size_t step = first; step < steps; ++step) {
          for (std::size_t i = 0; i < share; ++i) {
            ASSERT_EQ(loader.position(), before[4 * step]) << "within step " << step;
            Batch row;
            loader.next(row);
            const Batch& expected = rows[4 * step + rank * share + i];
            ASSERT_EQ(row.tokens, expected.tokens) << "step " << step;
            ASSERT_EQ(row.targets, expected.targets) << "step " << step;
            ASSERT_EQ(row.cu_seqlens, expected.cu_seqlens) << "step " << step;
          }
        }
        EXPECT_EQ(loader.position(), alone.position());
      }
    }
  }
}

// 100 tokens hold three batches of 32 and the token that follows; 33 exactly one, because the shard is entered; 70 two.
TEST(StreamLoader, EndsBehindTheLastShard) {
  Loader loader(stream_of("stream_end", {100, 33, 70}));
  EXPECT_EQ(loader.spans_per_epoch(), 4 * (3 + 1 + 2));
  Ints last;
  for (std::int64_t row = 0; row < loader.spans_per_epoch(); ++row) last = next_tokens(loader);
  const LoaderPosition after = loader.position();
  const std::string message = sentence_of(ExitCode::bad_data, [&] { next_tokens(loader); });
  EXPECT_TRUE(contains(message, "ends after 6 steps' batches of 32 tokens"));
  EXPECT_EQ(loader.position(), after);
  sentence_of(ExitCode::bad_data, [&] { next_tokens(loader); });
}

// The first shard is asked before anything is read of it, as the script does.
TEST(StreamLoader, AFirstShardOfOneBatchIsSkipped) {
  Loader loader(stream_of("stream_first", {33, 66}));
  EXPECT_EQ(loader.spans_per_epoch(), 8);
  for (int row = 0; row < 4; ++row) next_tokens(loader);
  EXPECT_EQ(loader.position().shard_visits, 1);
}

TEST(StreamLoader, ShardsShorterThanAStepAreRefused) {
  const std::string message = sentence_of(ExitCode::bad_data, [] {
    Loader loader(stream_of("stream_short", {100, 32}));
  });
  EXPECT_TRUE(contains(message, "32 tokens, fewer than the 33 of one step"));
  Loader loader(stream_of("stream_longer", {100, 33}));
  sentence_of(ExitCode::bad_data, [&] { loader.set_group_spans(5); });
  EXPECT_EQ(loader.options().group_spans, 4);
}

}  // namespace
}  // namespace mulligan::data_loader_test
