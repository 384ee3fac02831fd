// What [arena] asks of files and ranks, and of the runs of a result.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "framework/run/training_data.h"
#include "tests/support/sentence.h"

namespace mulligan::run_arena_track_test {
namespace {

DataIdentity published(std::size_t shards) {
  DataIdentity data;
  for (std::size_t i = 1; i <= shards; ++i)
    data.train.shards.push_back({fmt::format("fineweb_train_{:06}.bin", i), 100'000'000, "a"});
  data.validation.shards.push_back({"fineweb_val_000000.bin", 100'000'000, "b"});
  return data;
}

std::string arena_refusal(const DataIdentity& data, int ranks) {
  RunConfig config;
  require_arena(config, data, ranks);  // without a track nothing is asked
  config.arena.track = ArenaTrack::modded3;
  return refusal_of([&] { require_arena(config, data, ranks); });
}

TEST(RunArenaTrack, EightRanksOrADivisor) {
  for (const int ranks : {1, 2, 4, 8}) EXPECT_EQ(arena_refusal(published(3), ranks), "");
  for (const int ranks : {3, 16})
    EXPECT_TRUE(contains(arena_refusal(published(3), ranks), "1, 2, 4 or 8 ranks"));
}

TEST(RunArenaTrack, ThePublishedFilesInTheirOrder) {
  DataIdentity data = published(3);
  data.train.shards[1].name = "fineweb_train_000003.bin";
  EXPECT_TRUE(contains(arena_refusal(data, 1),
                       "'fineweb_train_000003.bin' has 100000000 tokens, but arena.track requires "
                       "'fineweb_train_000002.bin'"));
  data = published(3);
  data.train.shards[2].tokens = 524289;
  EXPECT_TRUE(contains(arena_refusal(data, 1), "has 524289 tokens"));
  data = published(103);
  data.train.shards[102].tokens = 5'000'000;  // the last published file
  EXPECT_EQ(arena_refusal(data, 1), "");
  data = published(1);
  data.validation.shards.push_back({"fineweb_val_000001.bin", 100'000'000, "c"});
  EXPECT_TRUE(contains(arena_refusal(data, 1), "2 validation shards"));
  data.validation.shards.clear();
  EXPECT_TRUE(contains(arena_refusal(data, 1), "0 validation shards"));
}

TEST(RunArenaTrack, ScheduleKeepsTheBatch) {
  RunConfig config;
  EXPECT_NO_THROW(require_arena_batch(config, 2));
  config.arena.track = ArenaTrack::modded3;
  EXPECT_NO_THROW(require_arena_batch(config, 1));
  EXPECT_THROW(require_arena_batch(config, 0.5), Error);
}

}  // namespace
}  // namespace mulligan::run_arena_track_test
