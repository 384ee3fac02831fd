// The training loader beyond the reference's fixture: positions, resuming, errors, and
// the prefetching thread.
#include <gtest/gtest.h>

#include "framework/data/loader.h"
#include "framework/data/prefetcher.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_loader_test {
namespace {

namespace fs = std::filesystem;
using Ints = std::vector<std::int32_t>;

// Shards of the given sizes. Each starts with `junk` tokens before its first BOS and has a BOS every 7 tokens after it. All
// other tokens differ, so that a wrong cursor shows.
std::vector<fs::path> make_shards(const std::string& name, const std::vector<std::size_t>& sizes,
                                  std::size_t junk = 3) {
  const fs::path folder = fresh_folder(name);
  std::vector<fs::path> paths;
  std::uint16_t value = 10;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::uint16_t> tokens(sizes[i]);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = t >= junk && (t - junk) % 7 == 0 ? std::uint16_t{1} : value++;
    }
    paths.push_back(folder / ("fineweb_train_00000" + std::to_string(i) + ".bin"));
    write_shard(paths.back(), tokens);
  }
  return paths;
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

TEST(Loader, RestoringASavedPositionGivesTheSameStreamAcrossShardsAndPasses) {
  const auto shards = make_shards("loader_restore", {100, 10, 75, 203});
  Loader whole(options_for(shards));
  std::vector<Ints> stream;
  std::vector<LoaderPosition> positions;
  const std::int64_t batches = 2 * whole.spans_per_epoch() + 3;
  for (std::int64_t i = 0; i < batches; ++i) {
    positions.push_back(whole.position());
    EXPECT_EQ(whole.position_after(i), whole.position()) << "batch " << i;
    stream.push_back(next_tokens(whole));
  }
  for (std::size_t start = 0; start < stream.size(); ++start) {
    Loader resumed(options_for(shards));
    resumed.restore(positions[start]);
    for (std::size_t i = start; i < stream.size(); ++i)
      ASSERT_EQ(next_tokens(resumed), stream[i]) << start << " " << i;
  }
}

TEST(Loader, AnotherWorldSizeResumesAtTheSameToken) {
  const auto shards = make_shards("loader_world", {400});
  Loader one(options_for(shards));
  for (int i = 0; i < 6; ++i) next_tokens(one);
  Loader two_ranks(options_for(shards, 2, 1));
  two_ranks.restore(one.position());
  next_tokens(one);                                     // rank 0's span
  EXPECT_EQ(next_tokens(two_ranks), next_tokens(one));  // rank 1's
  EXPECT_EQ(two_ranks.position(), one.position());
}

TEST(Loader, RanksTogetherReadEverySpanOnce) {
  const auto shards = make_shards("loader_ranks", {400});
  Loader alone(options_for(shards));
  Loader first(options_for(shards, 2, 0));
  Loader second(options_for(shards, 2, 1));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(next_tokens(first), next_tokens(alone));
    EXPECT_EQ(next_tokens(second), next_tokens(alone));
  }
}

TEST(Loader, RefusesShardsThatHoldNoGlobalMicroBatch) {
  const auto shards = make_shards("loader_small", {30, 36});
  EXPECT_NO_THROW(Loader(options_for(shards, 1)));
  const std::string message = sentence_of(ExitCode::bad_data, [&] { Loader loader(options_for(shards, 2)); });
  EXPECT_TRUE(contains(message, "34 tokens"));  // 2 ranks x 17
  EXPECT_TRUE(contains(message, "33"));         // 36 less 3 before the first BOS
}

// A step of four micro-batches has the same rows for any number of ranks: rank r reads the r-th share.
TEST(Loader, AGroupIsDealtToAnyNumberOfRanks) {
  const auto shards = make_shards("loader_groups", {200, 20, 150});
  const auto steps_of = [&](int world_size) {
    std::vector<std::vector<Ints>> steps(9);
    for (int rank = 0; rank < world_size; ++rank) {
      LoaderOptions options = options_for(shards, world_size, rank);
      options.group_spans = 4;
      Loader loader(options);
      for (auto& step : steps) {
        const LoaderPosition before = loader.position();
        for (int row = 0; row < 4 / world_size; ++row) {
          EXPECT_EQ(loader.position().consumed_spans, before.consumed_spans) << "within a group";
          step.push_back(next_tokens(loader));
        }
        EXPECT_EQ(loader.position().consumed_spans, before.consumed_spans + 4);
      }
    }
    return steps;
  };
  const auto alone = steps_of(1);
  EXPECT_EQ(steps_of(2), alone);
  EXPECT_EQ(steps_of(4), alone);
  // (200 - 3) / 17 = 11 spans: two groups and a tail; 20 tokens hold none; 150 hold 8 spans.
  LoaderOptions options = options_for(shards);
  options.group_spans = 4;
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
  const std::string odd = sentence_of(ExitCode::bad_configuration, [&] { rows.set_group_spans(3); });
  EXPECT_TRUE(contains(odd, "2 ranks"));
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
  EXPECT_TRUE(contains(message, "vocabulary of 15"));
  EXPECT_TRUE(contains(message, "fineweb_train_000000.bin"));
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
  const fs::path folder = fresh_folder("batch_arrays");
  write_shard(folder / "a.bin", std::vector<std::uint16_t>(200, 1));
  Loader all_bos(options_for({folder / "a.bin"}));
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

TEST(Prefetcher, GivesTheLoadersStreamAndThePositionOfWhatWasHandedOut) {
  const auto shards = make_shards("prefetch_stream", {100, 75});
  Loader plain(options_for(shards));
  Prefetcher ahead(std::make_unique<Loader>(options_for(shards)), 3);
  EXPECT_EQ(ahead.position(), plain.position());
  for (int i = 0; i < 50; ++i) {
    const Ints expected = next_tokens(plain);
    EXPECT_EQ(ahead.next().tokens, expected);
    EXPECT_EQ(ahead.position(), plain.position());
  }
}

TEST(Prefetcher, RestoresWhileReadingAhead) {
  const auto shards = make_shards("prefetch_restore", {100, 75});
  Prefetcher ahead(std::make_unique<Loader>(options_for(shards)), 3);
  ahead.next();
  const LoaderPosition saved = ahead.position();
  const Ints second = ahead.next().tokens;
  const Ints third = ahead.next().tokens;
  for (int i = 0; i < 20; ++i) {
    ahead.restore(saved);
    EXPECT_EQ(ahead.position(), saved);
    EXPECT_EQ(ahead.next().tokens, second);
    EXPECT_EQ(ahead.next().tokens, third);
  }
  const LoaderPosition here = ahead.position();
  sentence_of(ExitCode::bad_data, [&] { ahead.restore({1, 0, 2}); });
  EXPECT_EQ(ahead.position(), here);
  Loader plain(options_for(shards));
  plain.restore(here);
  EXPECT_EQ(ahead.next().tokens, next_tokens(plain));
}

TEST(Prefetcher, HandsOutTheGoodRowsBeforeRethrowingTheThreadsError) {
  const fs::path folder = fresh_folder("prefetch_error");
  std::vector<std::uint16_t> tokens(17 * 4, 2);
  tokens[0] = 1;
  tokens[17 * 3 + 5] = 999;  // in the fourth span
  write_shard(folder / "a.bin", tokens);
  LoaderOptions options = options_for({folder / "a.bin"});
  options.vocabulary = 10;
  Prefetcher ahead(std::make_unique<Loader>(options), 8);
  for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(ahead.next());
  for (int i = 0; i < 2; ++i) {
    const std::string message = sentence_of(ExitCode::bad_data, [&] { ahead.next(); });
    EXPECT_TRUE(contains(message, "999"));
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

}  // namespace
}  // namespace mulligan::data_loader_test
